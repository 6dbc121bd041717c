// Text, elements, tables and charts.

const page = JSON.parse(document.querySelector('script.page').textContent);
const byId = (id) => document.getElementById(id);
const unique = (values) => [...new Set(values)];
const worded = (code) => (code ? code.replaceAll('_', ' ') : '');
const counted = (n, what) => n.toLocaleString('en') + ' ' + what + (n === 1 ? '' : 's');

// Foreign text becomes text nodes and nothing else; what could hide or turn it round is spelled out.
const ODD = /(?:(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}])+/gu;

function spelled(text) {
  return [...text].map((character) => {
    const code = character.codePointAt(0);
    if (character === '\r') return '\\r';
    if (code < 0x100) return '\\x' + code.toString(16).padStart(2, '0');
    return code < 0x10000 ? '\\u' + code.toString(16).padStart(4, '0') : '\\U' + code.toString(16).padStart(8, '0');
  }).join('');
}

// On one line of a label: no marks, only their names.
const plain = (text) => text.replace(ODD, spelled);

function setText(element, text) {
  let done = 0;
  for (const found of text.matchAll(ODD)) {
    element.append(text.slice(done, found.index), make('span', { class: 'odd' }, spelled(found[0])));
    done = found.index + found[0].length;
  }
  element.append(text.slice(done));
  return element;
}

// A string given as a child becomes text.
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'click') element.addEventListener('click', value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined) continue;
    element.append(typeof child === 'string' ? plain(child) : child);
  }
  return element;
}

const badge = (text, look) => make('span', { class: 'badge ' + (look || '') }, text);

// What scrolls can be reached by the keyboard.
const scroller = (name, content) => make('div', { class: 'scroll', role: 'region', tabindex: 0, 'aria-label': name }, content);

function table({ caption, head, left, kept, rows }) {
  const look = (column) => (left[column] ? null : 'figure');
  const body = rows.map((row) => make('tr', null, row.length < head.length
    ? [make('th', { scope: 'row' }, row[0]), make('td', { colspan: kept.length - 1 }, row[1])]
    : kept.map((column) => make(column ? 'td' : 'th', { scope: column ? null : 'row', class: look(column) }, row[column]))));
  return scroller(caption, make('table', null, make('caption', { class: 'unseen' }, caption),
    make('thead', null, make('tr', null, kept.map((column) => make('th', { scope: 'col', class: look(column) }, worded(head[column]))))),
    make('tbody', null, body)));
}

// Places are shares of the width, colours are the style sheet's: nothing is drawn again on another screen.
function drawn(tag, attributes, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children.flat().map((child) => (typeof child === 'string' ? plain(child) : child)));
  return element;
}

const at = (share) => (100 * share).toFixed(2) + '%';
const line = (look, x1, y1, x2, y2) => drawn('line', { class: look, x1, x2, y1, y2 });
const strip = (look, ...shapes) => drawn('svg', { class: look, 'aria-hidden': 'true' }, ...shapes);
const anchor = (share) => (share < 0.08 ? 'start' : share > 0.92 ? 'end' : 'middle');
const labels = (list) => list.map(([place, text]) => drawn('text', { x: at(place), y: 13, 'text-anchor': anchor(place) }, text));

function chart({ title, points, limits }) {
  const ticks = limits.length ? [0, ...limits, 1] : [0, 0.25, 0.5, 0.75, 1];
  const zones = limits.length ? ticks.slice(1).map((end, n) => [(ticks[n] + end) / 2, 'Tier ' + (limits.length + 1 - n)]) : [];
  const rows = points.flatMap(({ target, value, low, high, shown }) => [
    make('span', { class: 'of', title: plain(target) }, target),
    strip('points', limits.map((place) => line('mark', at(place), 0, at(place), '100%')), line('interval', at(low), 13, at(high), 13),
      drawn('circle', { class: 'value', cx: at(value), cy: 13, r: 5 }), drawn('title', {}, shown)),
    make('span', { class: 'shown' }, shown),
  ]);
  const blank = () => make('span');
  return make('figure', null, make('figcaption', null, title),
    make('div', { class: 'chart', role: 'img', 'aria-label': title + ': a point with its 95 % interval for each row.' },
      zones.length ? [blank(), strip('zones', labels(zones)), blank()] : [],
      rows, blank(), strip('axis', labels(ticks.map((share) => [share, Math.round(100 * share) + ' %']))), blank()));
}
