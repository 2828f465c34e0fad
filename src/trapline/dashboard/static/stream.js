// The stream of server-sent events of one crawl, with its loss and its return.

const RETRY_MS = 2000;

// `listener`: {status(overview), log(events), crawl(), lost(), found()}. Returns a function that ends the stream.
export function watch(crawl, listener) {
  let source = null, timer = null, ended = false;

  const open = () => {
    source = new EventSource(`/api/${crawl}/stream`);
    source.addEventListener("open", () => listener.found());
    source.addEventListener("error", retry);
    for (const kind of ["status", "log", "crawl"]) {
      source.addEventListener(kind, (event) => listener[kind](JSON.parse(event.data)));
    }
  };
  const retry = () => {
    source.close();
    if (ended) return;
    listener.lost();
    clearTimeout(timer);
    timer = setTimeout(open, RETRY_MS);
  };
  const end = () => {
    ended = true;
    clearTimeout(timer);
    source.close();
  };

  open();
  return end;
}
