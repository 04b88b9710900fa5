// Requests from bytes, in whatever pieces these come.
#include "heddle/serve/request_reader.h"

#include <string>

#include <gtest/gtest.h>

#include "heddle/serve/api_error.h"

namespace heddle {
namespace {

const std::string kPost =
    "POST /v1/completions?x=1 HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer abc\r\nContent-Length: "
    "4\r\n\r\nbody";

int refused(const std::string& bytes, const HttpLimits& limits = {}) {
  RequestReader reader(limits);
  reader.push(bytes);
  try {
    while (reader.next()) {
    }
  } catch (const ApiError& error) {
    return error.status();
  }
  return 0;
}

TEST(RequestReader, ReadsARequest) {
  RequestReader reader({});
  EXPECT_FALSE(reader.has_begun());
  reader.push(kPost + kPost.substr(0, 10));
  const auto request = reader.next();
  ASSERT_TRUE(request);
  EXPECT_EQ(request->method, "POST");
  EXPECT_EQ(request->path, "/v1/completions");
  EXPECT_EQ(request->body, "body");
  EXPECT_EQ(request->key, "abc");
  EXPECT_EQ(request->host, "here");
  EXPECT_TRUE(request->keeps_alive && request->is_chunkable);
  EXPECT_FALSE(reader.next()) << "a tenth of the next one has come";
  EXPECT_TRUE(reader.has_begun());
  reader.push(kPost.substr(10));
  EXPECT_EQ(reader.next()->body, "body");
  EXPECT_FALSE(reader.has_begun());
}

TEST(RequestReader, IsTheSameForBytesOneByOne) {
  RequestReader reader({});
  const std::string chunked =
      "POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n2;note=1\r\ndy\r\n0\r\nTrailer: "
      "1\r\n\r\n";
  std::string bodies;
  std::string all = "\r\n";
  all.append(kPost).append(chunked).append(kPost);
  for (const char byte : all) {
    reader.push({&byte, 1});
    if (const auto request = reader.next()) bodies.append(request->body).append(".");
  }
  EXPECT_EQ(bodies, "body.body.body.");
}

TEST(RequestReader, RefusesWhatIsNoRequest) {
  EXPECT_EQ(refused("hello\r\n\r\n"), 400);
  EXPECT_EQ(refused(std::string("\x16\x03\x01\x02\x00", 5) + "tls\r\n\r\n"), 400);
  EXPECT_EQ(refused("GET / HTTP/2.0\r\n\r\n"), 400);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"), 400);
  EXPECT_EQ(refused("POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            400)
      << "two lengths: another server may take the other one";
  EXPECT_EQ(refused("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), 400);
  EXPECT_EQ(refused("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), 400);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nA b: c\r\n\r\n"), 400);
}

TEST(RequestReader, HoldsItsLimits) {
  const HttpLimits limits{.header_bytes = 200, .body_bytes = 10};
  EXPECT_EQ(refused(kPost, limits), 0);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nA: " + std::string(300, 'a'), limits), 431)
      << "before its end has come";
  EXPECT_EQ(refused("POST / HTTP/1.1\r\nContent-Length: 11\r\n\r\n", limits), 413)
      << "before the body has come";
  EXPECT_EQ(refused("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n01234567890\r\n", limits),
            413);
}

TEST(RequestReader, KnowsWhenAClientWaits) {
  RequestReader reader({});
  reader.push("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.wants_continue());
  EXPECT_FALSE(reader.wants_continue()) << "once";
  reader.push("ok");
  EXPECT_EQ(reader.next()->body, "ok");
}

TEST(RequestReader, KnowsOlderClients) {
  RequestReader reader({});
  reader.push("GET / HTTP/1.0\r\nx-api-key: k\r\n\r\nGET / HTTP/1.1\r\nConnection: close\r\n\r\n");
  const auto old = reader.next();
  EXPECT_TRUE(old && !old->keeps_alive && !old->is_chunkable);
  EXPECT_EQ(old->key, "k");
  EXPECT_FALSE(reader.next()->keeps_alive);
}

}  // namespace
}  // namespace heddle
