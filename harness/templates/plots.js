// Draws the figures of a page with ECharts, in the colours of the page's style, and again when those change.
"use strict";

const lanebenchPlots = (() => {
  const SYMBOLS = ["circle", "rect", "triangle", "diamond", "pin", "arrow", "roundRect", "circle"];
  const NARROW = 420;
  const charts = new Map();

  const style = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const palette = index => index === null || index === undefined ? style("--quiet") : style("--c" + index % 8);
  const round = value => Number(value.toPrecision(4));

  function tick(scale) {
    if (scale.steps) return value => Number.isInteger(value) ? scale.steps[value] ?? "" : "";
    if (scale === "shares") return value => round(100 - 100 / value) + " %";
    return value => Math.abs(value) >= 1e3 ? round(value / 1e3) + "k" : String(round(value));
  }

  // Where a figure is read off: servers stand a little beside the step that they belong to.
  function place(axis, value) {
    const step = axis.scale.steps ? Math.round(value) : value;
    return tick(axis.scale)(step);
  }

  function axis(of, across, narrow) {
    const log = of.scale === "log" || of.scale === "shares";
    const steps = of.scale.steps;
    const option = {
      type: log ? "log" : "value",
      name: of.name,
      nameLocation: "middle",
      nameGap: across ? 30 : 46,
      nameTextStyle: { color: style("--text") },
      axisLabel: { color: style("--quiet"), formatter: tick(of.scale), hideOverlap: true },
      axisLine: { show: true, onZero: false, lineStyle: { color: style("--quiet") } },
      splitLine: { lineStyle: { color: style("--line") } },
    };
    if (steps) {
      Object.assign(option, { min: -0.5, max: steps.length - 0.5, interval: 1 });
      Object.assign(option.axisLabel, { customValues: steps.map((_, index) => index), rotate: steps.length > (narrow ? 4 : 12) ? 40 : 0 });
      option.axisTick = { customValues: steps.map((_, index) => index) };
      option.splitLine.show = false;
    } else if (log) {
      option.logBase = 10;
      if (of.scale === "shares") option.min = 1;
    } else if (!across) {
      option.min = 0;
    }
    return option;
  }

  function interval(color) {
    return (_, api) => {
      const [low, high] = [1, 2].map(side => api.coord([api.value(0), api.value(side)]));
      const cap = 4;
      const line = (x1, y1, x2, y2) => ({ type: "line", shape: { x1, y1, x2, y2 }, style: { stroke: color, lineWidth: 1.5 } });
      return { type: "group", children: [
        line(low[0], low[1], high[0], high[1]),
        line(low[0] - cap, low[1], low[0] + cap, low[1]),
        line(high[0] - cap, high[1], high[0] + cap, high[1]),
      ] };
    };
  }

  // Bars that stand side by side on an axis of numbers: ECharts does that on one of names alone.
  function bars(figure) {
    return figure.x.scale.steps && figure.series.some(series => series.form === "bars" || series.form === "stack");
  }

  function series(of, figure) {
    const color = palette(of.color);
    const symbol = SYMBOLS[(of.color ?? 7) % SYMBOLS.length];
    const data = of.points.map((value, index) => ({ value, remark: of.remarks?.[index] }));
    const common = { name: of.name, data, color, animation: false };
    switch (of.form) {
      case "line":
        return { ...common, type: "line", symbol: figure.x.scale === "shares" || of.dashed ? "none" : symbol, symbolSize: 8,
          lineStyle: { width: 2, type: of.dashed ? "dashed" : "solid", color } };
      case "points":
        return { ...common, type: "scatter", symbol, symbolSize: figure.kind === "timeline" ? 4 : 6, itemStyle: { color, opacity: 0.65 } };
      case "hollow":
        return { ...common, type: "scatter", symbol: "emptyCircle", symbolSize: 11, itemStyle: { color } };
      case "interval":
        return { ...common, type: "custom", renderItem: interval(color), encode: { x: 0, y: [1, 2] }, z: 1, tooltip: { show: false } };
      case "bars":
      case "stack": {
        const stacked = of.form === "stack";
        const bar = { ...common, type: "bar", barMaxWidth: 40, itemStyle: { color } };
        if (figure.x.scale.steps) {
          const values = new Array(figure.x.scale.steps.length).fill(null);
          of.points.forEach(point => { values[point[0]] = point[1]; });
          bar.data = values;
        } else {
          bar.barWidth = 3;
        }
        return stacked ? { ...bar, stack: "all" } : bar;
      }
      default:
        return { ...common, type: "line", data: [], markLine: { silent: true, symbol: "none", label: { show: false },
          lineStyle: { color, type: "solid" }, data: of.points.map(point => ({ xAxis: point[0] })) } };
    }
  }

  function tooltip(figure) {
    return {
      // Text, never markup: names come from files.
      renderMode: "richText", confine: true,
      backgroundColor: style("--page"), borderColor: style("--line"), textStyle: { color: style("--text") },
      formatter: item => {
        const value = Array.isArray(item.value) ? item.value : [item.dataIndex, item.value];
        const remark = item.data?.remark ? "\n" + item.data.remark : "";
        return `${item.seriesName}, ${figure.x.name} ${place(figure.x, value[0])}\n${round(value[1])} ${figure.y.name}${remark}`;
      },
    };
  }

  function option(figure, element) {
    const narrow = element.clientWidth < NARROW;
    const horizontal = figure.kind === "stages";
    let x = axis(figure.x, true, narrow);
    let y = axis(figure.y, false, narrow);
    if (bars(figure)) {
      x = { ...x, type: "category", data: figure.x.scale.steps, min: undefined, max: undefined, interval: undefined, axisTick: {},
        axisLabel: { color: style("--quiet"), rotate: !horizontal && figure.x.scale.steps.length > (narrow ? 2 : 4) ? 30 : 0, interval: 0 } };
      if (x.axisLabel.rotate) x.nameGap = 56;
    }
    if (horizontal) {
      const lines = narrow ? { formatter: name => name.replace(", ", "\n"), fontSize: 10, lineHeight: 12 } : {};
      x = { ...x, inverse: true, name: "", axisLabel: { ...x.axisLabel, ...lines } };
      y = { ...y, nameGap: 30 };
      [x, y] = [y, x];
    }
    const names = [...new Set(figure.series.map(series => series.name))];
    return {
      animation: false,
      textStyle: { fontFamily: "system-ui, sans-serif" },
      aria: { enabled: true, label: { description: label(element) } },
      legend: { data: names, type: "scroll", top: 0, textStyle: { color: style("--text") },
        pageTextStyle: { color: style("--text") }, pageIconColor: style("--link") },
      grid: { left: horizontal ? 28 : 52, right: 24, top: 40, bottom: 32, containLabel: true },
      tooltip: tooltip(figure),
      xAxis: x, yAxis: y,
      series: figure.series.map(of => series(of, figure)),
    };
  }

  function label(element) {
    const caption = element.closest("figure")?.querySelector("figcaption");
    return caption ? caption.textContent.trim() : "";
  }

  function draw(figure) {
    const element = document.getElementById(figure.id);
    if (!element) return;
    let known = charts.get(figure.id);
    if (!known) {
      known = { chart: echarts.init(element, null, { renderer: "svg" }), figure };
      element.setAttribute("role", "img");
      charts.set(figure.id, known);
    }
    known.figure = figure;
    known.chart.setOption(option(figure, element), { notMerge: true });
  }

  function redraw() {
    for (const { chart, figure } of charts.values()) {
      chart.resize();
      draw(figure);
    }
  }

  // What is in view comes first; the rest follows while the browser has nothing else to do.
  function drawAll(figures) {
    const waiting = new Map(figures.map(figure => [figure.id, figure]));
    const now = id => {
      const figure = waiting.get(id);
      if (!waiting.delete(id)) return;
      draw(figure);
      if (waiting.size === 0) document.documentElement.dataset.drawn = String(Math.round(performance.now()));
    };
    for (const id of [...waiting.keys()]) {
      const element = document.getElementById(id);
      if (element && element.getBoundingClientRect().top < innerHeight) now(id);
    }
    const next = () => {
      const [id] = waiting.keys();
      if (id === undefined) return;
      now(id);
      setTimeout(next);
    };
    setTimeout(next);
    addEventListener("beforeprint", () => [...waiting.keys()].forEach(now));
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  matchMedia("print").addEventListener("change", redraw);
  let resized;
  addEventListener("resize", () => {
    clearTimeout(resized);
    resized = setTimeout(redraw, 150);
  });

  return { draw, drawAll };
})();

const lanebenchFigures = document.getElementById("plots");
if (lanebenchFigures) lanebenchPlots.drawAll(JSON.parse(lanebenchFigures.textContent));
