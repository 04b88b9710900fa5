// Written by scripts/goldens/make_unicode_properties.py.
// The formatter would make twice as many lines of the tables.
// clang-format off
#include "heddle/text/unicode/code_set.h"

namespace heddle {
namespace {

constexpr CodeRange k0[] = {    {0x2FE0, 0x2FEF},};
constexpr CodeRange k1[] = {    {0x0, 0x7F},};
constexpr CodeRange k2[] = {    {0x80, 0xFF},};
constexpr CodeRange k3[] = {    {0x100, 0x17F},};
constexpr CodeRange k4[] = {    {0x180, 0x24F},};
constexpr CodeRange k5[] = {    {0x250, 0x2AF},};
constexpr CodeRange k6[] = {    {0x2B0, 0x2FF},};
constexpr CodeRange k7[] = {    {0x300, 0x36F},};
constexpr CodeRange k8[] = {    {0x370, 0x3FF},};
constexpr CodeRange k9[] = {    {0x400, 0x4FF},};
constexpr CodeRange k10[] = {    {0x500, 0x52F},};
constexpr CodeRange k11[] = {    {0x530, 0x58F},};
constexpr CodeRange k12[] = {    {0x590, 0x5FF},};
constexpr CodeRange k13[] = {    {0x600, 0x6FF},};
constexpr CodeRange k14[] = {    {0x700, 0x74F},};
constexpr CodeRange k15[] = {    {0x750, 0x77F},};
constexpr CodeRange k16[] = {    {0x780, 0x7BF},};
constexpr CodeRange k17[] = {    {0x7C0, 0x7FF},};
constexpr CodeRange k18[] = {    {0x800, 0x83F},};
constexpr CodeRange k19[] = {    {0x840, 0x85F},};
constexpr CodeRange k20[] = {    {0x860, 0x86F},};
constexpr CodeRange k21[] = {    {0x870, 0x89F},};
constexpr CodeRange k22[] = {    {0x8A0, 0x8FF},};
constexpr CodeRange k23[] = {    {0x900, 0x97F},};
constexpr CodeRange k24[] = {    {0x980, 0x9FF},};
constexpr CodeRange k25[] = {    {0xA00, 0xA7F},};
constexpr CodeRange k26[] = {    {0xA80, 0xAFF},};
constexpr CodeRange k27[] = {    {0xB00, 0xB7F},};
constexpr CodeRange k28[] = {    {0xB80, 0xBFF},};
constexpr CodeRange k29[] = {    {0xC00, 0xC7F},};
constexpr CodeRange k30[] = {    {0xC80, 0xCFF},};
constexpr CodeRange k31[] = {    {0xD00, 0xD7F},};
constexpr CodeRange k32[] = {    {0xD80, 0xDFF},};
constexpr CodeRange k33[] = {    {0xE00, 0xE7F},};
constexpr CodeRange k34[] = {    {0xE80, 0xEFF},};
constexpr CodeRange k35[] = {    {0xF00, 0xFFF},};
constexpr CodeRange k36[] = {    {0x1000, 0x109F},};
constexpr CodeRange k37[] = {    {0x10A0, 0x10FF},};
constexpr CodeRange k38[] = {    {0x1100, 0x11FF},};
constexpr CodeRange k39[] = {    {0x1200, 0x137F},};
constexpr CodeRange k40[] = {    {0x1380, 0x139F},};
constexpr CodeRange k41[] = {    {0x13A0, 0x13FF},};
constexpr CodeRange k42[] = {    {0x1400, 0x167F},};
constexpr CodeRange k43[] = {    {0x1680, 0x169F},};
constexpr CodeRange k44[] = {    {0x16A0, 0x16FF},};
constexpr CodeRange k45[] = {    {0x1700, 0x171F},};
constexpr CodeRange k46[] = {    {0x1720, 0x173F},};
constexpr CodeRange k47[] = {    {0x1740, 0x175F},};
constexpr CodeRange k48[] = {    {0x1760, 0x177F},};
constexpr CodeRange k49[] = {    {0x1780, 0x17FF},};
constexpr CodeRange k50[] = {    {0x1800, 0x18AF},};
constexpr CodeRange k51[] = {    {0x18B0, 0x18FF},};
constexpr CodeRange k52[] = {    {0x1900, 0x194F},};
constexpr CodeRange k53[] = {    {0x1950, 0x197F},};
constexpr CodeRange k54[] = {    {0x1980, 0x19DF},};
constexpr CodeRange k55[] = {    {0x19E0, 0x19FF},};
constexpr CodeRange k56[] = {    {0x1A00, 0x1A1F},};
constexpr CodeRange k57[] = {    {0x1A20, 0x1AAF},};
constexpr CodeRange k58[] = {    {0x1AB0, 0x1AFF},};
constexpr CodeRange k59[] = {    {0x1B00, 0x1B7F},};
constexpr CodeRange k60[] = {    {0x1B80, 0x1BBF},};
constexpr CodeRange k61[] = {    {0x1BC0, 0x1BFF},};
constexpr CodeRange k62[] = {    {0x1C00, 0x1C4F},};
constexpr CodeRange k63[] = {    {0x1C50, 0x1C7F},};
constexpr CodeRange k64[] = {    {0x1C80, 0x1C8F},};
constexpr CodeRange k65[] = {    {0x1C90, 0x1CBF},};
constexpr CodeRange k66[] = {    {0x1CC0, 0x1CCF},};
constexpr CodeRange k67[] = {    {0x1CD0, 0x1CFF},};
constexpr CodeRange k68[] = {    {0x1D00, 0x1D7F},};
constexpr CodeRange k69[] = {    {0x1D80, 0x1DBF},};
constexpr CodeRange k70[] = {    {0x1DC0, 0x1DFF},};
constexpr CodeRange k71[] = {    {0x1E00, 0x1EFF},};
constexpr CodeRange k72[] = {    {0x1F00, 0x1FFF},};
constexpr CodeRange k73[] = {    {0x2000, 0x206F},};
constexpr CodeRange k74[] = {    {0x2070, 0x209F},};
constexpr CodeRange k75[] = {    {0x20A0, 0x20CF},};
constexpr CodeRange k76[] = {    {0x20D0, 0x20FF},};
constexpr CodeRange k77[] = {    {0x2100, 0x214F},};
constexpr CodeRange k78[] = {    {0x2150, 0x218F},};
constexpr CodeRange k79[] = {    {0x2190, 0x21FF},};
constexpr CodeRange k80[] = {    {0x2200, 0x22FF},};
constexpr CodeRange k81[] = {    {0x2300, 0x23FF},};
constexpr CodeRange k82[] = {    {0x2400, 0x243F},};
constexpr CodeRange k83[] = {    {0x2440, 0x245F},};
constexpr CodeRange k84[] = {    {0x2460, 0x24FF},};
constexpr CodeRange k85[] = {    {0x2500, 0x257F},};
constexpr CodeRange k86[] = {    {0x2580, 0x259F},};
constexpr CodeRange k87[] = {    {0x25A0, 0x25FF},};
constexpr CodeRange k88[] = {    {0x2600, 0x26FF},};
constexpr CodeRange k89[] = {    {0x2700, 0x27BF},};
constexpr CodeRange k90[] = {    {0x27C0, 0x27EF},};
constexpr CodeRange k91[] = {    {0x27F0, 0x27FF},};
constexpr CodeRange k92[] = {    {0x2800, 0x28FF},};
constexpr CodeRange k93[] = {    {0x2900, 0x297F},};
constexpr CodeRange k94[] = {    {0x2980, 0x29FF},};
constexpr CodeRange k95[] = {    {0x2A00, 0x2AFF},};
constexpr CodeRange k96[] = {    {0x2B00, 0x2BFF},};
constexpr CodeRange k97[] = {    {0x2C00, 0x2C5F},};
constexpr CodeRange k98[] = {    {0x2C60, 0x2C7F},};
constexpr CodeRange k99[] = {    {0x2C80, 0x2CFF},};
constexpr CodeRange k100[] = {    {0x2D00, 0x2D2F},};
constexpr CodeRange k101[] = {    {0x2D30, 0x2D7F},};
constexpr CodeRange k102[] = {    {0x2D80, 0x2DDF},};
constexpr CodeRange k103[] = {    {0x2DE0, 0x2DFF},};
constexpr CodeRange k104[] = {    {0x2E00, 0x2E7F},};
constexpr CodeRange k105[] = {    {0x2E80, 0x2EFF},};
constexpr CodeRange k106[] = {    {0x2F00, 0x2FDF},};
constexpr CodeRange k107[] = {    {0x2FF0, 0x2FFF},};
constexpr CodeRange k108[] = {    {0x3000, 0x303F},};
constexpr CodeRange k109[] = {    {0x3040, 0x309F},};
constexpr CodeRange k110[] = {    {0x30A0, 0x30FF},};
constexpr CodeRange k111[] = {    {0x3100, 0x312F},};
constexpr CodeRange k112[] = {    {0x3130, 0x318F},};
constexpr CodeRange k113[] = {    {0x3190, 0x319F},};
constexpr CodeRange k114[] = {    {0x31A0, 0x31BF},};
constexpr CodeRange k115[] = {    {0x31C0, 0x31EF},};
constexpr CodeRange k116[] = {    {0x31F0, 0x31FF},};
constexpr CodeRange k117[] = {    {0x3200, 0x32FF},};
constexpr CodeRange k118[] = {    {0x3300, 0x33FF},};
constexpr CodeRange k119[] = {    {0x3400, 0x4DBF},};
constexpr CodeRange k120[] = {    {0x4DC0, 0x4DFF},};
constexpr CodeRange k121[] = {    {0x4E00, 0x9FFF},};
constexpr CodeRange k122[] = {    {0xA000, 0xA48F},};
constexpr CodeRange k123[] = {    {0xA490, 0xA4CF},};
constexpr CodeRange k124[] = {    {0xA4D0, 0xA4FF},};
constexpr CodeRange k125[] = {    {0xA500, 0xA63F},};
constexpr CodeRange k126[] = {    {0xA640, 0xA69F},};
constexpr CodeRange k127[] = {    {0xA6A0, 0xA6FF},};
constexpr CodeRange k128[] = {    {0xA700, 0xA71F},};
constexpr CodeRange k129[] = {    {0xA720, 0xA7FF},};
constexpr CodeRange k130[] = {    {0xA800, 0xA82F},};
constexpr CodeRange k131[] = {    {0xA830, 0xA83F},};
constexpr CodeRange k132[] = {    {0xA840, 0xA87F},};
constexpr CodeRange k133[] = {    {0xA880, 0xA8DF},};
constexpr CodeRange k134[] = {    {0xA8E0, 0xA8FF},};
constexpr CodeRange k135[] = {    {0xA900, 0xA92F},};
constexpr CodeRange k136[] = {    {0xA930, 0xA95F},};
constexpr CodeRange k137[] = {    {0xA960, 0xA97F},};
constexpr CodeRange k138[] = {    {0xA980, 0xA9DF},};
constexpr CodeRange k139[] = {    {0xA9E0, 0xA9FF},};
constexpr CodeRange k140[] = {    {0xAA00, 0xAA5F},};
constexpr CodeRange k141[] = {    {0xAA60, 0xAA7F},};
constexpr CodeRange k142[] = {    {0xAA80, 0xAADF},};
constexpr CodeRange k143[] = {    {0xAAE0, 0xAAFF},};
constexpr CodeRange k144[] = {    {0xAB00, 0xAB2F},};
constexpr CodeRange k145[] = {    {0xAB30, 0xAB6F},};
constexpr CodeRange k146[] = {    {0xAB70, 0xABBF},};
constexpr CodeRange k147[] = {    {0xABC0, 0xABFF},};
constexpr CodeRange k148[] = {    {0xAC00, 0xD7AF},};
constexpr CodeRange k149[] = {    {0xD7B0, 0xD7FF},};
constexpr CodeRange k150[] = {    {0xE000, 0xF8FF},};
constexpr CodeRange k151[] = {    {0xF900, 0xFAFF},};
constexpr CodeRange k152[] = {    {0xFB00, 0xFB4F},};
constexpr CodeRange k153[] = {    {0xFB50, 0xFDFF},};
constexpr CodeRange k154[] = {    {0xFE00, 0xFE0F},};
constexpr CodeRange k155[] = {    {0xFE10, 0xFE1F},};
constexpr CodeRange k156[] = {    {0xFE20, 0xFE2F},};
constexpr CodeRange k157[] = {    {0xFE30, 0xFE4F},};
constexpr CodeRange k158[] = {    {0xFE50, 0xFE6F},};
constexpr CodeRange k159[] = {    {0xFE70, 0xFEFF},};
constexpr CodeRange k160[] = {    {0xFF00, 0xFFEF},};
constexpr CodeRange k161[] = {    {0xFFF0, 0xFFFF},};
constexpr CodeRange k162[] = {    {0x10000, 0x1007F},};
constexpr CodeRange k163[] = {    {0x10080, 0x100FF},};
constexpr CodeRange k164[] = {    {0x10100, 0x1013F},};
constexpr CodeRange k165[] = {    {0x10140, 0x1018F},};
constexpr CodeRange k166[] = {    {0x10190, 0x101CF},};
constexpr CodeRange k167[] = {    {0x101D0, 0x101FF},};
constexpr CodeRange k168[] = {    {0x10280, 0x1029F},};
constexpr CodeRange k169[] = {    {0x102A0, 0x102DF},};
constexpr CodeRange k170[] = {    {0x102E0, 0x102FF},};
constexpr CodeRange k171[] = {    {0x10300, 0x1032F},};
constexpr CodeRange k172[] = {    {0x10330, 0x1034F},};
constexpr CodeRange k173[] = {    {0x10350, 0x1037F},};
constexpr CodeRange k174[] = {    {0x10380, 0x1039F},};
constexpr CodeRange k175[] = {    {0x103A0, 0x103DF},};
constexpr CodeRange k176[] = {    {0x10400, 0x1044F},};
constexpr CodeRange k177[] = {    {0x10450, 0x1047F},};
constexpr CodeRange k178[] = {    {0x10480, 0x104AF},};
constexpr CodeRange k179[] = {    {0x104B0, 0x104FF},};
constexpr CodeRange k180[] = {    {0x10500, 0x1052F},};
constexpr CodeRange k181[] = {    {0x10530, 0x1056F},};
constexpr CodeRange k182[] = {    {0x10570, 0x105BF},};
constexpr CodeRange k183[] = {    {0x105C0, 0x105FF},};
constexpr CodeRange k184[] = {    {0x10600, 0x1077F},};
constexpr CodeRange k185[] = {    {0x10780, 0x107BF},};
constexpr CodeRange k186[] = {    {0x10800, 0x1083F},};
constexpr CodeRange k187[] = {    {0x10840, 0x1085F},};
constexpr CodeRange k188[] = {    {0x10860, 0x1087F},};
constexpr CodeRange k189[] = {    {0x10880, 0x108AF},};
constexpr CodeRange k190[] = {    {0x108E0, 0x108FF},};
constexpr CodeRange k191[] = {    {0x10900, 0x1091F},};
constexpr CodeRange k192[] = {    {0x10920, 0x1093F},};
constexpr CodeRange k193[] = {    {0x10980, 0x1099F},};
constexpr CodeRange k194[] = {    {0x109A0, 0x109FF},};
constexpr CodeRange k195[] = {    {0x10A00, 0x10A5F},};
constexpr CodeRange k196[] = {    {0x10A60, 0x10A7F},};
constexpr CodeRange k197[] = {    {0x10A80, 0x10A9F},};
constexpr CodeRange k198[] = {    {0x10AC0, 0x10AFF},};
constexpr CodeRange k199[] = {    {0x10B00, 0x10B3F},};
constexpr CodeRange k200[] = {    {0x10B40, 0x10B5F},};
constexpr CodeRange k201[] = {    {0x10B60, 0x10B7F},};
constexpr CodeRange k202[] = {    {0x10B80, 0x10BAF},};
constexpr CodeRange k203[] = {    {0x10C00, 0x10C4F},};
constexpr CodeRange k204[] = {    {0x10C80, 0x10CFF},};
constexpr CodeRange k205[] = {    {0x10D00, 0x10D3F},};
constexpr CodeRange k206[] = {    {0x10D40, 0x10D8F},};
constexpr CodeRange k207[] = {    {0x10E60, 0x10E7F},};
constexpr CodeRange k208[] = {    {0x10E80, 0x10EBF},};
constexpr CodeRange k209[] = {    {0x10EC0, 0x10EFF},};
constexpr CodeRange k210[] = {    {0x10F00, 0x10F2F},};
constexpr CodeRange k211[] = {    {0x10F30, 0x10F6F},};
constexpr CodeRange k212[] = {    {0x10F70, 0x10FAF},};
constexpr CodeRange k213[] = {    {0x10FB0, 0x10FDF},};
constexpr CodeRange k214[] = {    {0x10FE0, 0x10FFF},};
constexpr CodeRange k215[] = {    {0x11000, 0x1107F},};
constexpr CodeRange k216[] = {    {0x11080, 0x110CF},};
constexpr CodeRange k217[] = {    {0x110D0, 0x110FF},};
constexpr CodeRange k218[] = {    {0x11100, 0x1114F},};
constexpr CodeRange k219[] = {    {0x11150, 0x1117F},};
constexpr CodeRange k220[] = {    {0x11180, 0x111DF},};
constexpr CodeRange k221[] = {    {0x111E0, 0x111FF},};
constexpr CodeRange k222[] = {    {0x11200, 0x1124F},};
constexpr CodeRange k223[] = {    {0x11280, 0x112AF},};
constexpr CodeRange k224[] = {    {0x112B0, 0x112FF},};
constexpr CodeRange k225[] = {    {0x11300, 0x1137F},};
constexpr CodeRange k226[] = {    {0x11380, 0x113FF},};
constexpr CodeRange k227[] = {    {0x11400, 0x1147F},};
constexpr CodeRange k228[] = {    {0x11480, 0x114DF},};
constexpr CodeRange k229[] = {    {0x11580, 0x115FF},};
constexpr CodeRange k230[] = {    {0x11600, 0x1165F},};
constexpr CodeRange k231[] = {    {0x11660, 0x1167F},};
constexpr CodeRange k232[] = {    {0x11680, 0x116CF},};
constexpr CodeRange k233[] = {    {0x116D0, 0x116FF},};
constexpr CodeRange k234[] = {    {0x11700, 0x1174F},};
constexpr CodeRange k235[] = {    {0x11800, 0x1184F},};
constexpr CodeRange k236[] = {    {0x118A0, 0x118FF},};
constexpr CodeRange k237[] = {    {0x11900, 0x1195F},};
constexpr CodeRange k238[] = {    {0x119A0, 0x119FF},};
constexpr CodeRange k239[] = {    {0x11A00, 0x11A4F},};
constexpr CodeRange k240[] = {    {0x11A50, 0x11AAF},};
constexpr CodeRange k241[] = {    {0x11AB0, 0x11ABF},};
constexpr CodeRange k242[] = {    {0x11AC0, 0x11AFF},};
constexpr CodeRange k243[] = {    {0x11B00, 0x11B5F},};
constexpr CodeRange k244[] = {    {0x11BC0, 0x11BFF},};
constexpr CodeRange k245[] = {    {0x11C00, 0x11C6F},};
constexpr CodeRange k246[] = {    {0x11C70, 0x11CBF},};
constexpr CodeRange k247[] = {    {0x11D00, 0x11D5F},};
constexpr CodeRange k248[] = {    {0x11D60, 0x11DAF},};
constexpr CodeRange k249[] = {    {0x11EE0, 0x11EFF},};
constexpr CodeRange k250[] = {    {0x11F00, 0x11F5F},};
constexpr CodeRange k251[] = {    {0x11FB0, 0x11FBF},};
constexpr CodeRange k252[] = {    {0x11FC0, 0x11FFF},};
constexpr CodeRange k253[] = {    {0x12000, 0x123FF},};
constexpr CodeRange k254[] = {    {0x12400, 0x1247F},};
constexpr CodeRange k255[] = {    {0x12480, 0x1254F},};
constexpr CodeRange k256[] = {    {0x12F90, 0x12FFF},};
constexpr CodeRange k257[] = {    {0x13000, 0x1342F},};
constexpr CodeRange k258[] = {    {0x13430, 0x1345F},};
constexpr CodeRange k259[] = {    {0x13460, 0x143FF},};
constexpr CodeRange k260[] = {    {0x14400, 0x1467F},};
constexpr CodeRange k261[] = {    {0x16100, 0x1613F},};
constexpr CodeRange k262[] = {    {0x16800, 0x16A3F},};
constexpr CodeRange k263[] = {    {0x16A40, 0x16A6F},};
constexpr CodeRange k264[] = {    {0x16A70, 0x16ACF},};
constexpr CodeRange k265[] = {    {0x16AD0, 0x16AFF},};
constexpr CodeRange k266[] = {    {0x16B00, 0x16B8F},};
constexpr CodeRange k267[] = {    {0x16D40, 0x16D7F},};
constexpr CodeRange k268[] = {    {0x16E40, 0x16E9F},};
constexpr CodeRange k269[] = {    {0x16F00, 0x16F9F},};
constexpr CodeRange k270[] = {    {0x16FE0, 0x16FFF},};
constexpr CodeRange k271[] = {    {0x17000, 0x187FF},};
constexpr CodeRange k272[] = {    {0x18800, 0x18AFF},};
constexpr CodeRange k273[] = {    {0x18B00, 0x18CFF},};
constexpr CodeRange k274[] = {    {0x18D00, 0x18D7F},};
constexpr CodeRange k275[] = {    {0x1AFF0, 0x1AFFF},};
constexpr CodeRange k276[] = {    {0x1B000, 0x1B0FF},};
constexpr CodeRange k277[] = {    {0x1B100, 0x1B12F},};
constexpr CodeRange k278[] = {    {0x1B130, 0x1B16F},};
constexpr CodeRange k279[] = {    {0x1B170, 0x1B2FF},};
constexpr CodeRange k280[] = {    {0x1BC00, 0x1BC9F},};
constexpr CodeRange k281[] = {    {0x1BCA0, 0x1BCAF},};
constexpr CodeRange k282[] = {    {0x1CC00, 0x1CEBF},};
constexpr CodeRange k283[] = {    {0x1CF00, 0x1CFCF},};
constexpr CodeRange k284[] = {    {0x1D000, 0x1D0FF},};
constexpr CodeRange k285[] = {    {0x1D100, 0x1D1FF},};
constexpr CodeRange k286[] = {    {0x1D200, 0x1D24F},};
constexpr CodeRange k287[] = {    {0x1D2C0, 0x1D2DF},};
constexpr CodeRange k288[] = {    {0x1D2E0, 0x1D2FF},};
constexpr CodeRange k289[] = {    {0x1D300, 0x1D35F},};
constexpr CodeRange k290[] = {    {0x1D360, 0x1D37F},};
constexpr CodeRange k291[] = {    {0x1D400, 0x1D7FF},};
constexpr CodeRange k292[] = {    {0x1D800, 0x1DAAF},};
constexpr CodeRange k293[] = {    {0x1DF00, 0x1DFFF},};
constexpr CodeRange k294[] = {    {0x1E000, 0x1E02F},};
constexpr CodeRange k295[] = {    {0x1E030, 0x1E08F},};
constexpr CodeRange k296[] = {    {0x1E100, 0x1E14F},};
constexpr CodeRange k297[] = {    {0x1E290, 0x1E2BF},};
constexpr CodeRange k298[] = {    {0x1E2C0, 0x1E2FF},};
constexpr CodeRange k299[] = {    {0x1E4D0, 0x1E4FF},};
constexpr CodeRange k300[] = {    {0x1E5D0, 0x1E5FF},};
constexpr CodeRange k301[] = {    {0x1E7E0, 0x1E7FF},};
constexpr CodeRange k302[] = {    {0x1E800, 0x1E8DF},};
constexpr CodeRange k303[] = {    {0x1E900, 0x1E95F},};
constexpr CodeRange k304[] = {    {0x1EC70, 0x1ECBF},};
constexpr CodeRange k305[] = {    {0x1ED00, 0x1ED4F},};
constexpr CodeRange k306[] = {    {0x1EE00, 0x1EEFF},};
constexpr CodeRange k307[] = {    {0x1F000, 0x1F02F},};
constexpr CodeRange k308[] = {    {0x1F030, 0x1F09F},};
constexpr CodeRange k309[] = {    {0x1F0A0, 0x1F0FF},};
constexpr CodeRange k310[] = {    {0x1F100, 0x1F1FF},};
constexpr CodeRange k311[] = {    {0x1F200, 0x1F2FF},};
constexpr CodeRange k312[] = {    {0x1F300, 0x1F5FF},};
constexpr CodeRange k313[] = {    {0x1F600, 0x1F64F},};
constexpr CodeRange k314[] = {    {0x1F650, 0x1F67F},};
constexpr CodeRange k315[] = {    {0x1F680, 0x1F6FF},};
constexpr CodeRange k316[] = {    {0x1F700, 0x1F77F},};
constexpr CodeRange k317[] = {    {0x1F780, 0x1F7FF},};
constexpr CodeRange k318[] = {    {0x1F800, 0x1F8FF},};
constexpr CodeRange k319[] = {    {0x1F900, 0x1F9FF},};
constexpr CodeRange k320[] = {    {0x1FA00, 0x1FA6F},};
constexpr CodeRange k321[] = {    {0x1FA70, 0x1FAFF},};
constexpr CodeRange k322[] = {    {0x1FB00, 0x1FBFF},};
constexpr CodeRange k323[] = {    {0x20000, 0x2A6DF},};
constexpr CodeRange k324[] = {    {0x2A700, 0x2B73F},};
constexpr CodeRange k325[] = {    {0x2B740, 0x2B81F},};
constexpr CodeRange k326[] = {    {0x2B820, 0x2CEAF},};
constexpr CodeRange k327[] = {    {0x2CEB0, 0x2EBEF},};
constexpr CodeRange k328[] = {    {0x2EBF0, 0x2EE5F},};
constexpr CodeRange k329[] = {    {0x2F800, 0x2FA1F},};
constexpr CodeRange k330[] = {    {0x30000, 0x3134F},};
constexpr CodeRange k331[] = {    {0x31350, 0x323AF},};
constexpr CodeRange k332[] = {    {0xE0000, 0xE007F},};
constexpr CodeRange k333[] = {    {0xE0100, 0xE01EF},};
constexpr CodeRange k334[] = {    {0xF0000, 0xFFFFF},};
constexpr CodeRange k335[] = {    {0x100000, 0x10FFFF},};
constexpr NamedRanges kNames[] = {
{"adlam", k303}, {"aegeannumbers", k164}, {"ahom", k234}, {"alchemicalsymbols", k316}, {"alphabeticpresentationforms", k152},
{"anatolianhieroglyphs", k260}, {"ancientgreekmusicalnotation", k286}, {"ancientgreeknumbers", k165}, {"ancientsymbols", k166}, {"arabic", k13},
{"arabicextendeda", k22}, {"arabicextendedb", k21}, {"arabicextendedc", k209}, {"arabicmathematicalalphabeticsymbols", k306}, {"arabicpresentationformsa", k153},
{"arabicpresentationformsb", k159}, {"arabicsupplement", k15}, {"armenian", k11}, {"arrows", k79}, {"avestan", k199},
{"balinese", k59}, {"bamum", k127}, {"bamumsupplement", k262}, {"basiclatin", k1}, {"bassavah", k265},
{"batak", k61}, {"bengali", k24}, {"bhaiksuki", k245}, {"blockelements", k86}, {"bopomofo", k111},
{"bopomofoextended", k114}, {"boxdrawing", k85}, {"brahmi", k215}, {"braillepatterns", k92}, {"buginese", k56},
{"buhid", k47}, {"byzantinemusicalsymbols", k284}, {"carian", k169}, {"caucasianalbanian", k181}, {"chakma", k218},
{"cham", k140}, {"cherokee", k41}, {"cherokeesupplement", k146}, {"chesssymbols", k320}, {"chorasmian", k213},
{"cjkcompatibility", k118}, {"cjkcompatibilityforms", k157}, {"cjkcompatibilityideographs", k151}, {"cjkcompatibilityideographssupplement", k329}, {"cjkradicalssupplement", k105},
{"cjkstrokes", k115}, {"cjksymbolsandpunctuation", k108}, {"cjkunifiedideographs", k121}, {"cjkunifiedideographsextensiona", k119}, {"cjkunifiedideographsextensionb", k323},
{"cjkunifiedideographsextensionc", k324}, {"cjkunifiedideographsextensiond", k325}, {"cjkunifiedideographsextensione", k326}, {"cjkunifiedideographsextensionf", k327}, {"cjkunifiedideographsextensiong", k330},
{"cjkunifiedideographsextensionh", k331}, {"cjkunifiedideographsextensioni", k328}, {"combiningdiacriticalmarks", k7}, {"combiningdiacriticalmarksextended", k58}, {"combiningdiacriticalmarksforsymbols", k76},
{"combiningdiacriticalmarkssupplement", k70}, {"combininghalfmarks", k156}, {"commonindicnumberforms", k131}, {"controlpictures", k82}, {"coptic", k99},
{"copticepactnumbers", k170}, {"countingrodnumerals", k290}, {"cuneiform", k253}, {"cuneiformnumbersandpunctuation", k254}, {"currencysymbols", k75},
{"cypriotsyllabary", k186}, {"cyprominoan", k256}, {"cyrillic", k9}, {"cyrillicextendeda", k103}, {"cyrillicextendedb", k126},
{"cyrillicextendedc", k64}, {"cyrillicextendedd", k295}, {"cyrillicsupplement", k10}, {"deseret", k176}, {"devanagari", k23},
{"devanagariextended", k134}, {"devanagariextendeda", k243}, {"dingbats", k89}, {"divesakuru", k237}, {"dogra", k235},
{"dominotiles", k308}, {"duployan", k280}, {"earlydynasticcuneiform", k255}, {"egyptianhieroglyphformatcontrols", k258}, {"egyptianhieroglyphs", k257},
{"egyptianhieroglyphsextendeda", k259}, {"elbasan", k180}, {"elymaic", k214}, {"emoticons", k313}, {"enclosedalphanumerics", k84},
{"enclosedalphanumericsupplement", k310}, {"enclosedcjklettersandmonths", k117}, {"enclosedideographicsupplement", k311}, {"ethiopic", k39}, {"ethiopicextended", k102},
{"ethiopicextendeda", k144}, {"ethiopicextendedb", k301}, {"ethiopicsupplement", k40}, {"garay", k206}, {"generalpunctuation", k73},
{"geometricshapes", k87}, {"geometricshapesextended", k317}, {"georgian", k37}, {"georgianextended", k65}, {"georgiansupplement", k100},
{"glagolitic", k97}, {"glagoliticsupplement", k294}, {"gothic", k172}, {"grantha", k225}, {"greekandcoptic", k8},
{"greekextended", k72}, {"gujarati", k26}, {"gunjalagondi", k248}, {"gurmukhi", k25}, {"gurungkhema", k261},
{"halfwidthandfullwidthforms", k160}, {"hangulcompatibilityjamo", k112}, {"hanguljamo", k38}, {"hanguljamoextendeda", k137}, {"hanguljamoextendedb", k149},
{"hangulsyllables", k148}, {"hanifirohingya", k205}, {"hanunoo", k46}, {"hatran", k190}, {"hebrew", k12},
{"hiragana", k109}, {"ideographicdescriptioncharacters", k107}, {"ideographicsymbolsandpunctuation", k270}, {"imperialaramaic", k187}, {"indicsiyaqnumbers", k304},
{"inscriptionalpahlavi", k201}, {"inscriptionalparthian", k200}, {"ipaextensions", k5}, {"javanese", k138}, {"kaithi", k216},
{"kaktoviknumerals", k287}, {"kanaextendeda", k277}, {"kanaextendedb", k275}, {"kanasupplement", k276}, {"kanbun", k113},
{"kangxiradicals", k106}, {"kannada", k30}, {"katakana", k110}, {"katakanaphoneticextensions", k116}, {"kawi", k250},
{"kayahli", k135}, {"kharoshthi", k195}, {"khitansmallscript", k273}, {"khmer", k49}, {"khmersymbols", k55},
{"khojki", k222}, {"khudawadi", k224}, {"kiratrai", k267}, {"lao", k34}, {"latin1supplement", k2},
{"latinextendeda", k3}, {"latinextendedadditional", k71}, {"latinextendedb", k4}, {"latinextendedc", k98}, {"latinextendedd", k129},
{"latinextendede", k145}, {"latinextendedf", k185}, {"latinextendedg", k293}, {"lepcha", k62}, {"letterlikesymbols", k77},
{"limbu", k52}, {"lineara", k184}, {"linearbideograms", k163}, {"linearbsyllabary", k162}, {"lisu", k124},
{"lisusupplement", k251}, {"lycian", k168}, {"lydian", k192}, {"mahajani", k219}, {"mahjongtiles", k307},
{"makasar", k249}, {"malayalam", k31}, {"mandaic", k19}, {"manichaean", k198}, {"marchen", k246},
{"masaramgondi", k247}, {"mathematicalalphanumericsymbols", k291}, {"mathematicaloperators", k80}, {"mayannumerals", k288}, {"medefaidrin", k268},
{"meeteimayek", k147}, {"meeteimayekextensions", k143}, {"mendekikakui", k302}, {"meroiticcursive", k194}, {"meroitichieroglyphs", k193},
{"miao", k269}, {"miscellaneousmathematicalsymbolsa", k90}, {"miscellaneousmathematicalsymbolsb", k94}, {"miscellaneoussymbols", k88}, {"miscellaneoussymbolsandarrows", k96},
{"miscellaneoussymbolsandpictographs", k312}, {"miscellaneoustechnical", k81}, {"modi", k230}, {"modifiertoneletters", k128}, {"mongolian", k50},
{"mongoliansupplement", k231}, {"mro", k263}, {"multani", k223}, {"musicalsymbols", k285}, {"myanmar", k36},
{"myanmarextendeda", k141}, {"myanmarextendedb", k139}, {"myanmarextendedc", k233}, {"nabataean", k189}, {"nagmundari", k299},
{"nandinagari", k238}, {"newa", k227}, {"newtailue", k54}, {"nko", k17}, {"noblock", k0},
{"numberforms", k78}, {"nushu", k279}, {"nyiakengpuachuehmong", k296}, {"ogham", k43}, {"olchiki", k63},
{"oldhungarian", k204}, {"olditalic", k171}, {"oldnortharabian", k197}, {"oldpermic", k173}, {"oldpersian", k175},
{"oldsogdian", k210}, {"oldsoutharabian", k196}, {"oldturkic", k203}, {"olduyghur", k212}, {"olonal", k300},
{"opticalcharacterrecognition", k83}, {"oriya", k27}, {"ornamentaldingbats", k314}, {"osage", k179}, {"osmanya", k178},
{"ottomansiyaqnumbers", k305}, {"pahawhhmong", k266}, {"palmyrene", k188}, {"paucinhau", k242}, {"phagspa", k132},
{"phaistosdisc", k167}, {"phoenician", k191}, {"phoneticextensions", k68}, {"phoneticextensionssupplement", k69}, {"playingcards", k309},
{"privateusearea", k150}, {"psalterpahlavi", k202}, {"rejang", k136}, {"ruminumeralsymbols", k207}, {"runic", k44},
{"samaritan", k18}, {"saurashtra", k133}, {"sharada", k220}, {"shavian", k177}, {"shorthandformatcontrols", k281},
{"siddham", k229}, {"sinhala", k32}, {"sinhalaarchaicnumbers", k221}, {"smallformvariants", k158}, {"smallkanaextension", k278},
{"sogdian", k211}, {"sorasompeng", k217}, {"soyombo", k240}, {"spacingmodifierletters", k6}, {"specials", k161},
{"sundanese", k60}, {"sundanesesupplement", k66}, {"sunuwar", k244}, {"superscriptsandsubscripts", k74}, {"supplementalarrowsa", k91},
{"supplementalarrowsb", k93}, {"supplementalarrowsc", k318}, {"supplementalmathematicaloperators", k95}, {"supplementalpunctuation", k104}, {"supplementalsymbolsandpictographs", k319},
{"supplementaryprivateuseareaa", k334}, {"supplementaryprivateuseareab", k335}, {"suttonsignwriting", k292}, {"sylotinagri", k130}, {"symbolsandpictographsextendeda", k321},
{"symbolsforlegacycomputing", k322}, {"symbolsforlegacycomputingsupplement", k282}, {"syriac", k14}, {"syriacsupplement", k20}, {"tagalog", k45},
{"tagbanwa", k48}, {"tags", k332}, {"taile", k53}, {"taitham", k57}, {"taiviet", k142},
{"taixuanjingsymbols", k289}, {"takri", k232}, {"tamil", k28}, {"tamilsupplement", k252}, {"tangsa", k264},
{"tangut", k271}, {"tangutcomponents", k272}, {"tangutsupplement", k274}, {"telugu", k29}, {"thaana", k16},
{"thai", k33}, {"tibetan", k35}, {"tifinagh", k101}, {"tirhuta", k228}, {"todhri", k183},
{"toto", k297}, {"transportandmapsymbols", k315}, {"tulutigalari", k226}, {"ugaritic", k174}, {"unifiedcanadianaboriginalsyllabics", k42},
{"unifiedcanadianaboriginalsyllabicsextended", k51}, {"unifiedcanadianaboriginalsyllabicsextendeda", k241}, {"vai", k125}, {"variationselectors", k154}, {"variationselectorssupplement", k333},
{"vedicextensions", k67}, {"verticalforms", k155}, {"vithkuqi", k182}, {"wancho", k298}, {"warangciti", k236},
{"yezidi", k208}, {"yijinghexagramsymbols", k120}, {"yiradicals", k123}, {"yisyllables", k122}, {"zanabazarsquare", k239},
{"znamennymusicalnotation", k283},
};

}  // namespace

std::span<const NamedRanges> block_names() {
  return kNames;
}

}  // namespace heddle
