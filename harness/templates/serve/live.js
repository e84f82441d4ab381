// Follows a campaign: what it published last stands in the page, and every change comes as an event.
"use strict";
(() => {
  const MOST_ROWS = 100;
  const MEASURED = "measured";
  const element = id => document.getElementById(id);
  const say = (id, text) => { if (element(id).textContent !== text) element(id).textContent = text; };
  const figure = (value, decimals) => value === null ? "-" : value.toFixed(decimals);
  const printed = verdict => verdict === "valid" ? verdict : verdict.toUpperCase();

  function duration(seconds) {
    const whole = Math.round(seconds);
    return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} m ${String(whole % 60).padStart(2, "0")} s`;
  }

  function standing(now) {
    const trials = now.trials_done + now.trials_left;
    const text = `${now.trials_done} of ${trials} trials`;
    say("trials", text);
    const bar = element("progress");
    bar.max = Math.max(trials, 1);
    bar.value = now.trials_done;
    bar.textContent = text;
    say("state", now.state);
    say("left", now.seconds_left === null ? "" : duration(now.seconds_left));
    const trial = now.trial;
    say("trial", trial ? `${trial.workload}, ${trial.server}, ${trial.rung}, block ${trial.block}: ${trial.phase}` : "");
    const counts = Object.entries(now.counts).filter(([, count]) => count > 0);
    say("counts", counts.map(([verdict, count]) => `${count} ${printed(verdict)}`).join(", ") || "none yet");
    element("so-far").hidden = now.trials_done === 0;
  }

  function plot(id, y, series) {
    lanebenchPlots.draw({ id, kind: "timeline", x: { name: "seconds of load", scale: "linear" }, y: { name: y, scale: "linear" }, series });
  }

  function seconds(trial) {
    const all = trial ? trial.seconds : [];
    const of = (name, color, key, dashed) => ({
      name, color, dashed, form: "line",
      points: all.filter(second => second[key] !== null).map(second => [second.at, second[key]]),
    });
    plot("latency", "ms", [of("p50", 0, "p50_ms"), of("p99", 1, "p99_ms")]);
    plot("rate", "requests/s", [of("correct", 2, "correct"), of("shed", 4, "shed", true), of("failed", 3, "failed", true)]);
    const last = all[all.length - 1];
    say("second", last
      ? `Second ${Math.round(last.at)}${last[MEASURED] ? "" : " (warm-up)"}: ${last.correct} correct, ${last.shed} shed, ${last.failed} failed; ` +
        `p50 ${figure(last.p50_ms, 3)} ms, p99 ${figure(last.p99_ms, 3)} ms`
      : "\u00a0");
  }

  function cell(text, type) {
    const td = document.createElement("td");
    td.textContent = text;
    if (type) td.className = type;
    return td;
  }

  function verdicts(fallen) {
    const body = element("fallen");
    const newest = Number(body.firstElementChild?.dataset.number ?? 0);
    for (const one of fallen.filter(one => one.number > newest)) {
      const row = document.createElement("tr");
      row.dataset.number = one.number;
      const attempt = one.attempt > 1 ? `, attempt ${one.attempt}` : "";
      const look = one.verdict === "valid" ? "valid" : one.verdict === "failed" ? "failed" : "doubtful";
      row.append(
        cell(one.number), cell(one.workload, "text"), cell(one.server, "text"), cell(one.rung, "text"), cell(one.block + attempt),
        cell(figure(one.requests_per_second, 0)), cell(figure(one.p99_ms, 3)), cell(printed(one.verdict), `text ${look}`),
        cell(one.tripped.join(", "), "text"));
      body.prepend(row);
    }
    while (body.children.length > MOST_ROWS) body.lastElementChild.remove();
  }

  function show(now) {
    standing(now);
    seconds(now.trial);
    verdicts(now.fallen);
  }

  function end(report) {
    element("ended").hidden = false;
    say("ended-how", report ? "The campaign has ended." : "The campaign was broken off before anything was measured.");
    element("report").hidden = !report;
    element("so-far").hidden = true;
    say("trial", "");
    say("left", "");
  }

  const now = JSON.parse(element("now").textContent);
  if (now) show(now);
  const events = new EventSource(document.currentScript.dataset.events);
  events.addEventListener("progress", event => show(JSON.parse(event.data)));
  events.addEventListener("ended", event => {
    events.close();
    end(JSON.parse(event.data).report);
  });
  events.addEventListener("open", () => say("connection", ""));
  events.addEventListener("error", () => say("connection", "lanebench does not answer; trying again"));
})();
