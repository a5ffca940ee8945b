// The metric panels: Plotly is loaded when the panels come near the screen, drawn at most once a second.
const MIN_MS = 1000;
const FULL_RELOAD_MS = 10000;
const MAX_INCREMENTAL = 900; // points; beyond it the server thins the series, so they are fetched whole

export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const PALETTE = ["--dh-accent", "--dh-good", "--dh-warning", "--dh-info", "--dh-bad", "--dh-gold", "--dh-neutral"];

export class Charts {
  constructor(root, { url, plotly }) {
    this.root = root;
    this.url = url;
    this.plotlyUrl = plotly;
    this.series = new Map();
    this.panels = [];
    this.evaluations = [];
    this.lastDraw = 0;
    this.lastFull = 0;
    this.timer = 0;
    this.isVisible = false;
    document.addEventListener("theme:changed", () => this.draw());
    document.addEventListener("visibilitychange", () => this.refreshSoon());
    new IntersectionObserver((entries) => {
      this.isVisible = entries.some((entry) => entry.isIntersecting);
      if (this.isVisible) this.refreshSoon();
    }, { rootMargin: "300px" }).observe(root);
  }

  refreshSoon() {
    if (this.timer || !this.isVisible || document.hidden) return;
    this.timer = setTimeout(() => this.refresh(), Math.max(0, this.lastDraw + MIN_MS - performance.now()));
  }

  async refresh() {
    this.timer = 0;
    try {
      await this.loadPlotly();
      await this.fetchAll();
      this.draw();
    } catch (error) {
      this.root.classList.add("is-stale");
      this.timer = setTimeout(() => ((this.timer = 0), this.refreshSoon()), 3000);
      return;
    }
    this.root.classList.remove("is-stale");
    this.lastDraw = performance.now();
  }

  // Only what is new, as long as the server need not thin the series.
  async fetchAll() {
    const longest = Math.max(0, ...[...this.series.values()].map((line) => line.x.length));
    const isLong = longest > MAX_INCREMENTAL;
    if (isLong && performance.now() - this.lastFull < FULL_RELOAD_MS) {
      this.timer = setTimeout(() => this.refresh(), FULL_RELOAD_MS);
      return;
    }
    const lastStep = Math.max(0, ...[...this.series.values()].map((line) => line.x.at(-1) ?? 0));
    const fromStep = isLong ? 0 : lastStep;
    if (!fromStep) this.lastFull = performance.now();
    const response = await fetch(`${this.url}?from_step=${fromStep}`);
    if (!response.ok) throw new Error(String(response.status));
    this.take(await response.json());
  }

  // A resumed attempt repeats steps: everything from the answer's first step on is replaced.
  take({ panels, evaluations, series, from_step: fromStep }) {
    this.panels = panels;
    this.evaluations = evaluations;
    if (!fromStep) this.series.clear();
    for (const [name, line] of Object.entries(series)) {
      const known = this.series.get(name) ?? { x: [], y: [] };
      const kept = known.x.findIndex((step) => step >= fromStep);
      const end = kept < 0 ? known.x.length : kept;
      this.series.set(name, { x: [...known.x.slice(0, end), ...line.x], y: [...known.y.slice(0, end), ...line.y] });
    }
  }

  // A later attempt begins before the newest step that we know.
  restart() {
    this.series.clear();
    this.refreshSoon();
  }

  loadPlotly() {
    this.plotlyReady ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = this.plotlyUrl;
      script.onload = resolve;
      script.onerror = () => reject(new Error("Plotly could not be loaded"));
      document.head.append(script);
    });
    return this.plotlyReady;
  }

  draw() {
    if (!window.Plotly || !this.panels.length) return;
    const shown = this.panels.map((panel) => [panel, this.tracesOf(panel)]).filter(([, traces]) => traces.length);
    if (!shown.length) return this.showEmpty();
    for (const other of this.root.querySelectorAll(":scope > :not(.chart, .chart-group)")) other.remove();
    for (const [panel, traces] of shown) {
      const place = this.placeOf(panel);
      window.Plotly.react(place, traces, this.layoutOf(panel, traces), { displayModeBar: false, responsive: true });
    }
  }

  showEmpty() {
    this.root.innerHTML = '<p class="sub charts-empty">The first numbers appear after the first optimiser step.</p>';
  }

  placeOf(panel) {
    const id = `chart-${panel.title.toLowerCase().replace(/[^a-z]+/g, "-")}`;
    const known = document.getElementById(id);
    if (known) return known;
    const figure = document.createElement("figure");
    figure.className = "chart";
    figure.dataset.order = this.panels.indexOf(panel);
    const caption = document.createElement("figcaption");
    caption.textContent = panel.title;
    if (panel.unit) caption.append(Object.assign(document.createElement("span"), { className: "sub", textContent: ` ${panel.unit}` }));
    if (panel.help) {
      const mark = Object.assign(document.createElement("button"), { type: "button", className: "chart-help", title: panel.help, textContent: "?" });
      mark.setAttribute("aria-label", `${panel.title}: ${panel.help}`);
      caption.append(mark);
    }
    const place = document.createElement("div");
    place.id = id;
    figure.append(caption, place);
    // Charts stay in the order of the panels, whichever has numbers first.
    const later = [...this.root.querySelectorAll(".chart, .chart-group")].find((other) => Number(other.dataset.order) > Number(figure.dataset.order));
    this.root.insertBefore(figure, later ?? null);
    if (panel.group) this.placeGroup(panel, figure);
    return place;
  }

  // The heading of a group stands before its first chart.
  placeGroup(panel, figure) {
    const order = this.panels.findIndex((other) => other.group === panel.group) - 0.5;
    if (this.root.querySelector(`.chart-group[data-order="${order}"]`)) return;
    const heading = Object.assign(document.createElement("h3"), { className: "chart-group", textContent: panel.group });
    heading.dataset.order = order;
    this.root.insertBefore(heading, figure);
  }

  tracesOf(panel) {
    const names = panel.names.flatMap((name) => (name.endsWith("/") ? [...this.series.keys()].filter((key) => key.startsWith(name)).sort() : [name]));
    const traces = names
      .filter((name) => this.series.has(name))
      .map((name, index) => {
        const line = this.series.get(name);
        const few = line.x.length < 40;
        const color = css(PALETTE[index % PALETTE.length]);
        return { name: name.split("/").slice(1).join("/").replace(/_s$/, "").replaceAll("_", " "), x: line.x, y: line.y, mode: few ? "lines+markers" : "lines", line: { color, width: 1.8 }, marker: { color, size: 4 }, hovertemplate: "%{y:.4g}" };
      });
    if (panel.kind === "success" && this.evaluations.length) traces.push(this.evaluationTrace());
    return traces;
  }

  evaluationTrace() {
    const points = this.evaluations;
    const color = css("--dh-gold");
    return {
      name: "held-out", mode: "markers", x: points.map((p) => p.step), y: points.map((p) => p.success),
      marker: { color, size: 8, symbol: "diamond" },
      error_y: { type: "data", symmetric: false, array: points.map((p) => p.high - p.success), arrayminus: points.map((p) => p.success - p.low), color, thickness: 1.4, width: 4 },
      text: points.map((p) => `${p.num_success}/${p.num_tasks} ${p.name}`), hovertemplate: "%{y:.0%} (%{text})",
    };
  }

  layoutOf(panel, traces) {
    const muted = css("--dh-muted");
    const grid = css("--dh-border");
    const axis = { gridcolor: grid, linecolor: grid, zeroline: false, tickfont: { size: 10, color: muted }, automargin: true };
    const yaxis = { ...axis, ...scaleOf(panel.kind, traces.flatMap((trace) => trace.y).filter(Number.isFinite)) };
    const shapes = panel.limit == null ? [] : [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: panel.limit, y1: panel.limit, line: { color: css("--dh-bad"), width: 1, dash: "dot" } }];
    const lastStep = Math.max(1, ...traces.map((trace) => trace.x.at(-1) ?? 0));
    const ticks = lastStep <= 10 ? { dtick: lastStep <= 5 ? 1 : 2 } : { nticks: 6 };
    return {
      height: 190, margin: { l: 38, r: 10, t: 6, b: traces.length > 1 ? 44 : 26 }, paper_bgcolor: "transparent", plot_bgcolor: "transparent",
      font: { family: "inherit", size: 11, color: css("--dh-text") }, hovermode: "x unified",
      hoverlabel: { bgcolor: css("--dh-surface"), bordercolor: grid, font: { size: 11, color: css("--dh-text") } },
      showlegend: traces.length > 1, legend: { orientation: "h", y: -0.17, x: 0, font: { size: 10, color: muted } },
      xaxis: { ...axis, ...ticks, tickformat: "d", showgrid: false }, yaxis, shapes, uirevision: panel.title,
    };
  }
}

// How the y axis runs for these values.
function scaleOf(kind, values) {
  const low = Math.min(...values), high = Math.max(...values);
  if (kind === "share") return { range: [-0.03, 1.03], tickformat: ".0%" };
  if (kind === "log" && low > 0 && high > 10 * low) return { type: "log", dtick: 1 };
  // A constant is a flat line in the middle, not the noise of its last digits.
  const around = Math.abs(high) || 1;
  if (high - low < 1e-4 * around) return { range: low < 0 || high === 0 ? [Math.min(0, low * 1.2), around] : [0, 2 * high], nticks: 5 };
  return { nticks: 5, ...(kind === "success" || kind === "log" ? { rangemode: "tozero" } : {}) };
}
