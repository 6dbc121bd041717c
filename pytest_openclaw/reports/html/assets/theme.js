// Light, dark, or as the system has it.

function setTheme(name) {
  if (name === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  for (const button of document.querySelectorAll('[data-theme-is]')) button.setAttribute('aria-pressed', String(button.dataset.themeIs === name));
}

function buildTheme() {
  setTheme('auto');
  for (const button of document.querySelectorAll('[data-theme-is]')) button.addEventListener('click', () => setTheme(button.dataset.themeIs));
}
