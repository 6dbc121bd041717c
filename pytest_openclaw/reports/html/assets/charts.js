// Points with their intervals. Places are shares of the width, colours are the style sheet's, so that nothing
// is drawn again on another screen or in another theme.

function drawn(tag, attributes, text) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  if (text !== undefined) element.append(plain(text));
  return element;
}

const at = (share) => (100 * share).toFixed(2) + '%';
const anchor = (share) => (share < 0.08 ? 'start' : share > 0.92 ? 'end' : 'middle');

function strip(kind, ...shapes) {
  const svg = drawn('svg', { class: kind, 'aria-hidden': 'true' });
  svg.append(...shapes.flat());
  return svg;
}

const labels = (list) => list.map(([place, text]) => drawn('text', { x: at(place), y: 13, 'text-anchor': anchor(place) }, text));
const marks = (data) => data.marks.map((place) => drawn('line', { class: 'mark', x1: at(place), x2: at(place), y1: 0, y2: '100%' }));

function chart(data) {
  const rows = data.points.flatMap(([target, value, low, high, shown]) => {
    const point = strip('points', marks(data),
      drawn('line', { class: 'interval', x1: at(low), x2: at(high), y1: 13, y2: 13 }),
      drawn('circle', { class: 'value', cx: at(value), cy: 13, r: 5 }));
    point.append(drawn('title', {}, shown));
    return [make('span', { class: 'of', title: plain(target) }, target), point, make('span', { class: 'shown' }, shown)];
  });
  const blank = () => make('span');
  return make('figure', null, make('figcaption', null, data.title),
    make('div', { class: 'chart', role: 'img', 'aria-label': plain(data.description) },
      data.zones.length ? [blank(), strip('zones', labels(data.zones)), blank()] : [],
      rows, blank(), strip('axis', labels(data.ticks)), blank()));
}
