// Charts in the colours of the style sheet, drawn one after the other when there is time.

const drawn = new Map();

function colour(name) {
  const probe = make('span', { class: 'unseen' });
  probe.style.color = 'var(--' + name + ')';
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

function look() {
  const [ink, soft, line, value, good, bad] = ['ink', 'soft', 'line', 'value', 'good', 'bad'].map(colour);
  const series = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => colour('series-' + n));
  const font = getComputedStyle(document.body).fontFamily;
  return {
    background: 'transparent', font, padding: { left: 0, right: 4, top: 2, bottom: 2 }, view: { stroke: null },
    axis: { labelColor: soft, titleColor: soft, titleFontWeight: 'normal', labelFontSize: 12, titleFontSize: 12, gridColor: line, domainColor: line, tickColor: line, labelLimit: Math.max(90, Math.min(240, innerWidth * 0.3)) },
    axisY: { labelColor: ink, labelPadding: 9 }, axisTop: { labelColor: soft },
    legend: { labelColor: ink, labelFontSize: 12, symbolStrokeColor: soft, symbolSize: 160 },
    range: { category: series },
    style: {
      value: { filled: true, color: value, size: 80, opacity: 1 }, interval: { color: value, strokeWidth: 3, opacity: 0.45 }, mark: { color: soft, strokeDash: [3, 3], strokeWidth: 1 },
      ridge: { color: value, opacity: 0.6 }, percentile: { color: ink, strokeWidth: 1.5 },
      good: { color: good, stroke: line, strokeWidth: 1 }, bad: { color: bad, stroke: line, strokeWidth: 1 }, shown: { color: ink, fontSize: 12.5 },
      curve: { strokeWidth: 2 }, 'curve-interval': { strokeWidth: 1.5, opacity: 0.5 }, 'curve-point': { filled: true, size: 70, opacity: 1 },
    },
  };
}

// Its own, because the library's puts markup together.
function tip(handler, event, item, value) {
  const box = byId('tip');
  box.hidden = value === null || value === undefined || value === '';
  if (box.hidden) return;
  box.textContent = '';
  const entries = typeof value === 'object' ? Object.entries(value) : [['', String(value)]];
  for (const [name, shown] of entries) box.append(make('div', null, make('span', null, name + ' '), String(shown)));
  const place = box.getBoundingClientRect();
  box.style.left = Math.max(4, Math.min(event.clientX + 12, innerWidth - place.width - 8)) + 'px';
  box.style.top = Math.max(4, Math.min(event.clientY + 12, innerHeight - place.height - 8)) + 'px';
}

function chart(data) {
  const inner = make('div', { class: 'drawing' }); // the library gives it a role of its own
  const box = make('div', { class: 'chart', role: 'img', 'aria-label': data.description }, inner);
  drawn.set(inner, data.spec);
  if (!data.min_px) return make('figure', null, make('figcaption', null, data.title), box);
  box.style.minWidth = data.min_px + 'px';
  return make('figure', null, make('figcaption', null, data.title), scroller(data.title, box));
}

async function drawCharts() {
  const config = look();
  for (const [box, spec] of drawn) {
    if (box.view) box.view.finalize();
    box.view = await vegaEmbed(box, spec, { ast: true, renderer: 'svg', actions: false, defaultStyle: false, tooltip: tip, config });
    await new Promise((go) => { setTimeout(go, 0); });
  }
  document.body.dataset.charts = 'drawn';
}
