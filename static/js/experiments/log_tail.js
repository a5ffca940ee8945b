// The log tail: follows a file by its byte cursor, filters by level and words, jumps to the first error. It
// reads when the experiment says something, and now and then for lines that come without an event.
const QUIET_MS = 5000;
const EVENT_MS = 600;
const MAX_LINES = 4000;
const LEVELS = ["debug", "info", "warning", "error"];

export class LogTail {
  constructor(root) {
    this.root = root;
    this.lines = root.querySelector("[data-log-lines]");
    this.status = root.querySelector("[data-log-state]");
    this.file = root.querySelector("[data-log-file]");
    this.level = "info";
    this.words = "";
    this.isFollowing = true;
    this.end = null;
    this.generation = 0;
    this.timer = 0;
    this.wire();
    this.load();
    this.readIn(QUIET_MS);
    document.addEventListener("visibilitychange", () => this.wake());
  }

  // Something happened: read soon, and once for many events in a row.
  wake() {
    this.isWoken = true;
    if (this.dueAt > Date.now() + EVENT_MS) this.readIn(EVENT_MS);
  }

  readIn(ms) {
    clearTimeout(this.timer);
    this.dueAt = Date.now() + ms;
    this.timer = setTimeout(async () => {
      this.isWoken = false;
      if (this.isFollowing && !document.hidden) await this.poll();
      this.readIn(this.isWoken ? EVENT_MS : QUIET_MS);
    }, ms);
  }

  wire() {
    this.file.addEventListener("change", () => {
      history.replaceState(null, "", `?tab=log&file=${encodeURIComponent(this.file.value)}`);
      this.load();
    });
    this.root.addEventListener("click", (event) => {
      const level = event.target.closest("[data-level]");
      if (level) this.setLevel(level);
      if (event.target.closest("[data-first-error]")) this.jumpToError();
      if (event.target.closest("[data-log-follow]")) this.setFollowing(!this.isFollowing, true);
    });
    this.root.querySelector("[data-log-filter]").addEventListener("input", (event) => {
      this.words = event.target.value.toLowerCase();
      this.filter(this.lines.children);
    });
    this.lines.addEventListener("scroll", () => {
      const atEnd = this.lines.scrollHeight - this.lines.scrollTop - this.lines.clientHeight < 30;
      if (!atEnd && this.isFollowing) this.setFollowing(false);
    });
  }

  setLevel(button) {
    this.level = button.dataset.level;
    for (const other of this.root.querySelectorAll("[data-level]")) other.toggleAttribute("aria-current", other === button);
    this.filter(this.lines.children);
    if (this.isFollowing) this.toEnd();
  }

  setFollowing(value, byHand = false) {
    this.isFollowing = value;
    this.root.querySelector("[data-log-follow]").setAttribute("aria-pressed", String(value));
    if (value && byHand) this.load();
  }

  async ask(query) {
    const generation = this.generation;
    const response = await fetch(`${this.root.dataset.url}?file=${encodeURIComponent(this.file.value)}${query}`);
    if (!response.ok) throw new Error(`the log answered ${response.status}`);
    const chunk = await response.json();
    return generation === this.generation ? chunk : null;
  }

  async load(query = "") {
    this.generation += 1;
    this.lines.replaceChildren();
    this.end = null;
    try {
      const chunk = await this.ask(query);
      if (chunk) this.take(chunk);
      if (this.isFollowing) this.toEnd();
    } catch (error) {
      this.status.textContent = `${error.message}; trying again`;
    }
  }

  async poll() {
    if (this.end === null) return this.load();
    try {
      const chunk = await this.ask(`&after=${this.end}`);
      if (!chunk) return;
      if (chunk.num_bytes < this.end) return this.load(); // the file was begun anew
      this.take(chunk);
      if (chunk.lines.length && this.isFollowing) this.toEnd();
      this.isWoken ||= chunk.lines.length > 0 && chunk.end < chunk.num_bytes; // it is written faster than read
    } catch (error) {
      this.status.textContent = `${error.message}; trying again`;
    }
  }

  async jumpToError() {
    this.setFollowing(false);
    this.generation += 1;
    const chunk = await this.searchError();
    if (!chunk) return;
    if (!chunk.found) {
      this.status.textContent = "No error in this file.";
      return;
    }
    this.lines.replaceChildren();
    this.take(chunk);
    const line = this.lines.querySelector(".is-error");
    line?.scrollIntoView({ block: "center" });
    line?.classList.add("is-target");
  }

  // Asks again while the server has not come to the end; any other choice on the page ends the search.
  async searchError(after = 0) {
    const chunk = await this.ask(`&at=first-error&after=${after}`);
    if (!chunk || chunk.found || chunk.searched === null) return chunk;
    const megabytes = (bytes) => (bytes / 1e6).toFixed(0);
    this.status.textContent = `No error in the first ${megabytes(chunk.searched)} of ${megabytes(chunk.num_bytes)} MB; searching on`;
    return this.searchError(chunk.searched);
  }

  take(chunk) {
    const added = chunk.lines.map(([offset, level, text]) => {
      const line = document.createElement("div");
      line.className = `log-line is-${level}`;
      line.dataset.level = level;
      line.dataset.offset = offset;
      line.textContent = text;
      return line;
    });
    this.filter(added);
    this.lines.append(...added);
    while (this.lines.childElementCount > MAX_LINES) this.lines.firstElementChild.remove();
    this.end = chunk.end;
    const kb = (chunk.num_bytes / 1000).toFixed(1);
    this.status.textContent = `${this.lines.childElementCount} lines shown from byte ${this.lines.firstElementChild?.dataset.offset ?? 0} of ${kb} kB`;
  }

  filter(lines) {
    for (const line of lines) {
      const tooLow = LEVELS.indexOf(line.dataset.level) < LEVELS.indexOf(this.level);
      line.hidden = tooLow || (this.words !== "" && !line.textContent.toLowerCase().includes(this.words));
    }
  }

  toEnd() {
    this.lines.scrollTop = this.lines.scrollHeight;
  }
}
