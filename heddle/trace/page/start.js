// Puts the page together: reads, draws, and answers the pointer and the keys.
"use strict";

function listen(model, view) {
  const {canvas, overview} = view;
  let grip = null;
  const hover = event => showHover(model, view, view.find(event.offsetX, event.offsetY), event.offsetX, event.offsetY);
  canvas.addEventListener("wheel", event => {
    event.preventDefault();
    if (event.shiftKey) view.pan(0, event.deltaY || event.deltaX);
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) view.pan(event.deltaX, 0);
    else view.zoom(Math.exp(event.deltaY * 0.0015), event.offsetX);
    hover(event);
  }, {passive: false});
  canvas.addEventListener("pointerdown", event => {
    canvas.setPointerCapture(event.pointerId);
    grip = [event.offsetX, event.offsetY];
  });
  canvas.addEventListener("pointermove", event => {
    if (grip) {
      view.pan(grip[0] - event.offsetX, grip[1] - event.offsetY);
      grip = [event.offsetX, event.offsetY];
    }
    hover(event);
    view.redraw();
  });
  canvas.addEventListener("pointerup", () => { grip = null; });
  canvas.addEventListener("pointerleave", () => { showHover(model, view, null); view.redraw(); });
  canvas.addEventListener("dblclick", event => {
    const found = view.find(event.offsetX, event.offsetY);
    if (!found) return;
    const lane = model.lanes[found.lane], from = lane.fetched[found.event], to = lane.done[found.event];
    view.begin = from - (to - from), view.end = to + (to - from);
    view.pan(0, 0);
  });
  const move = event => {
    if (!event.buttons) return;
    const at = model.begin + (event.offsetX - kGutter) / view.width * (model.end - model.begin);
    view.pan((at - (view.begin + view.end) / 2) / (view.end - view.begin) * view.width, 0);
  };
  overview.addEventListener("pointerdown", move);
  overview.addEventListener("pointermove", move);
  window.addEventListener("resize", () => view.resize());
}

function listenToKeys(view) {
  const path = document.getElementById("path-button");
  const togglePath = () => {
    view.showPath = !view.showPath;
    path.setAttribute("aria-pressed", view.showPath);
    view.redraw();
  };
  path.addEventListener("click", togglePath);
  document.getElementById("fit-button").addEventListener("click", () => view.fit());
  const middle = () => kGutter + view.width / 2;
  const actions = {
    w: () => view.zoom(0.8, middle()), s: () => view.zoom(1.25, middle()),
    a: () => view.pan(-0.1 * view.width, 0), d: () => view.pan(0.1 * view.width, 0),
    f: () => view.fit(), c: togglePath,
  };
  window.addEventListener("keydown", event => {
    const action = actions[event.key.toLowerCase()];
    if (action && !event.ctrlKey && !event.metaKey && !event.altKey) action();
  });
}

// Which timeline is shown stands in the address, so that a link and a reload keep it.
function chooseTimeline() {
  const select = document.getElementById("which");
  for (let i = 0; elementOf("summary", i); ++i) select.add(new Option(summaryOf(i).executor, i));
  const asked = Number(location.hash.slice(1));
  select.value = asked > 0 && asked < select.options.length ? asked : 0;
  select.hidden = select.options.length < 2;
  select.addEventListener("change", () => { location.hash = select.value; });
  window.addEventListener("hashchange", () => location.reload());
  return Number(select.value);
}

async function show() {
  const model = await readModel(chooseTimeline()), busy = new Map(model.summary.work.map(work => [work.op, work.busy]));
  model.busyOf = op => busy.get(op) || 0;
  const view = new View(model, document.getElementById("lanes"), document.getElementById("overview"));
  showFacts(model), showOps(model, view), showBodies(model), showIdle(model);
  view.resize();
  listen(model, view), listenToKeys(view);
  window.timeline = {model, view};
}

function start() {
  show().catch(error => {
    document.body.replaceChildren(make("p", {id: "failure", textContent: `This page cannot be shown: ${error}`}));
  });
}
