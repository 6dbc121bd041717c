// Text, elements and tables.

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

const narrow = matchMedia('(max-width: 900px)');
const badge = (text, look) => make('span', { class: 'badge ' + (look || '') }, text);

// What is wider than its box says so.
const wide = new ResizeObserver((entries) => entries.forEach(({ target }) => target.classList.toggle('wide', target.scrollWidth > target.clientWidth + 1)));

// What scrolls can be reached by the keyboard.
function scroller(name, content) {
  const box = make('div', { class: 'scroll', role: 'region', tabindex: 0, 'aria-label': name }, content);
  wide.observe(box);
  return make('div', null, box, make('p', { class: 'hint', 'aria-hidden': 'true' }, 'scroll sideways →'));
}

function table({ caption, head, left, kept, rows }) {
  const look = (column) => (left[column] ? null : 'figure');
  const body = rows.map((row) => make('tr', null, row.length < head.length
    ? [make('th', { scope: 'row' }, row[0]), make('td', { colspan: kept.length - 1 }, row[1])]
    : kept.map((column) => make(column ? 'td' : 'th', { scope: column ? null : 'row', class: look(column) }, row[column]))));
  return scroller(caption, make('table', null, make('caption', { class: 'unseen' }, caption),
    make('thead', null, make('tr', null, kept.map((column) => make('th', { scope: 'col', class: look(column) }, worded(head[column]))))),
    make('tbody', null, body)));
}

// Light, dark, or as the system has it.
function setTheme(name) {
  document.documentElement.dataset.theme = name;
  for (const button of document.querySelectorAll('[data-theme-is]')) button.setAttribute('aria-pressed', String(button.dataset.themeIs === name));
}

function startTheme() {
  for (const button of document.querySelectorAll('[data-theme-is]')) button.addEventListener('click', () => setTheme(button.dataset.themeIs));
  setTheme('auto');
}
