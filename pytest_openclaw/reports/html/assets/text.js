// Foreign text. It becomes text nodes and nothing else; what could hide or turn it round is spelled out.

const ODD = /(?:(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}])+/gu;

function spelled(text) {
  let escaped = '';
  for (const character of text) {
    const code = character.codePointAt(0);
    const hex = code.toString(16);
    if (character === '\r') escaped += '\\r';
    else if (code < 0x100) escaped += '\\x' + hex.padStart(2, '0');
    else if (code < 0x10000) escaped += '\\u' + hex.padStart(4, '0');
    else escaped += '\\U' + hex.padStart(8, '0');
  }
  return escaped;
}

// On one line of a label: no marks, only their names.
function plain(text) {
  return text.replace(ODD, spelled);
}

function setText(element, text) {
  element.textContent = '';
  let done = 0;
  for (const found of text.matchAll(ODD)) {
    if (found.index > done) element.append(text.slice(done, found.index));
    const mark = document.createElement('span');
    mark.className = 'odd';
    mark.textContent = spelled(found[0]);
    element.append(mark);
    done = found.index + found[0].length;
  }
  if (done < text.length) element.append(text.slice(done));
  return element;
}
