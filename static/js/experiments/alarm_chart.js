// The page of an alarm: only the chart of the metric that its guard watches.
import { MetricCharts } from "../charts/metric_charts.js";

const root = document.querySelector("[data-charts]");

class AlarmChart extends MetricCharts {
  take(answer) {
    const metric = root.dataset.only;
    const isShown = (panel) => panel.names.some((name) => name === metric || (name.endsWith("/") && metric.startsWith(name)));
    super.take({ ...answer, panels: answer.panels.filter(isShown) });
  }
}

new AlarmChart(root, { url: root.dataset.url, plotly: root.dataset.plotly });
