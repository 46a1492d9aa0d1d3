"use strict";
// Draws each chart of a page when it comes near, in the page's colours and in the width it has.
(() => {
  const charts = JSON.parse(document.getElementById("chart-data").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const NARROW = 560;
  const MENU = 40;
  const MOST = 2;
  const PANEL = 180;
  const GAP = 20;

  const colours = (ink) => {
    const line = ink.replace("rgb(", "rgba(").replace(")", ", 0.18)");
    const words = { labelColor: ink, titleColor: ink };
    return {
      background: "transparent",
      axis: { ...words, gridColor: line, domainColor: ink, tickColor: ink },
      legend: words,
      header: words,
      title: { color: ink },
      text: { color: ink },
    };
  };
  // On a narrow page names get half of the room, in smaller letters, so that they still tell.
  const NAMES = 0.5;
  const narrowed = (room) => ({
    axis: { labelLimit: room * NAMES, labelFontSize: 9 },
    legend: {
      orient: "bottom",
      direction: "vertical",
      columns: Math.max(1, Math.floor(room / 170)),
      labelLimit: room - 50,
    },
  });
  const merged = (...configs) => {
    const whole = {};
    for (const config of configs) {
      for (const [name, value] of Object.entries(config)) {
        whole[name] = typeof value === "object" ? { ...whole[name], ...value } : value;
      }
    }
    return whole;
  };

  // A chart says what it needs: the least width of it or of each of its panels, what axes and
  // titles take of a panel's width, what stands beside the panels, and whether they are squares.
  const fitted = (spec, whole) => {
    const { least, panels, margin, beside, square, most } = spec.usermeta;
    if (!panels) {
      // Fitting makes columns narrower, and so the last slanted name stands out farther than was reckoned.
      const padding = { left: 5, right: 20, top: 5, bottom: 5 };
      return { ...spec, padding, width: Math.max(Math.min(whole, most ?? whole), least), autosize: { type: "fit-x", contains: "padding" } };
    }
    const room = whole < NARROW ? whole : whole - beside;
    const beyond = whole < NARROW ? Math.min(margin, room * NAMES + MENU) : margin;
    const fitting = (space, wanted) => Math.max(1, Math.min(panels, Math.floor(space / wanted)));
    if (!spec.concat) {  // facets, of which only the first of a row has names beside it
      const wanted = Math.max(least, PANEL) + GAP;
      const columns = fitting(room - beyond, wanted);
      const across = Math.max(least, Math.min((room - beyond) / columns - GAP, MOST * wanted));
      return { ...spec, columns, spec: { ...spec.spec, width: across } };
    }
    const columns = fitting(room, least);
    if (margin === null) return { ...spec, columns };
    const across = Math.max(least, Math.min(room / columns, MOST * least)) - beyond;
    const sized = (panel) => ({ ...panel, width: across, height: square ? across : panel.height });
    return { ...spec, columns, concat: spec.concat.map(sized) };
  };
  const draw = (place) => {
    const room = width(place) - MENU;
    const ink = getComputedStyle(place).color;
    const spec = fitted(structuredClone(charts[place.dataset.chart]), room);
    spec.config = merged(spec.config, colours(ink), room < NARROW ? narrowed(room) : {});
    drawn.set(place, width(place));
    vegaEmbed(place, spec, {
      renderer: "svg",
      ast: true,
      actions: { export: true, source: false, compiled: false, editor: false },
      tooltip: { theme: dark.matches ? "dark" : "light" },
    }).catch((problem) => { place.textContent = `This figure can't be drawn: ${problem.message}`; });
  };

  // A drawn chart is as wide as it is: what room there is, the element around it tells.
  const width = (place) => place.parentElement.clientWidth;
  const drawn = new Map();
  const again = new ResizeObserver(() => {
    for (const [place, before] of drawn) {
      if (width(place) !== before) draw(place);
    }
  });
  const first = (place) => {
    if (drawn.has(place)) return;
    near.unobserve(place);
    draw(place);
    again.observe(place.parentElement);
  };
  const near = new IntersectionObserver(
    (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => first(entry.target)),
    { rootMargin: "600px" },
  );
  const places = document.querySelectorAll(".chart");
  for (const place of places) near.observe(place);
  dark.addEventListener("change", () => [...drawn.keys()].forEach(draw));
  addEventListener("beforeprint", () => places.forEach(first));
})();
