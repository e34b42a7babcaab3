// What a report can do beyond being read: legends that hide and show, zoom, values under the pointer and under the
// arrow keys, scenes to turn, data as tables, downloads. The figures are drawn already and are complete without any of
// it; the script finds what it needs in their data-* attributes and in the CSV of each figure.
import { rememberedTheme, rememberTheme } from '../src/kit/theme';
import { startContents, startFilters, startSharedFigures } from './cards';
import { startFigure } from './figure';
import { hideHint } from './hint';
import { startLanding } from './landing';

const root = document.documentElement;
root.classList.add('js');

// Figures start as they come near: a report may have hundreds.
const near = new IntersectionObserver(
  entries => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      startFigure(target as HTMLElement);
    }
  },
  { rootMargin: '600px' },
);
for (const figure of document.querySelectorAll('figure')) {
  near.observe(figure);
  figure.addEventListener('focusin', () => startFigure(figure), { once: true });
}

const button = document.getElementById('theme') as HTMLButtonElement;
const themes = ['auto', 'light', 'dark'];
function setTheme(name: string): void {
  if (name === 'auto') delete root.dataset.theme;
  else root.dataset.theme = name;
  button.textContent = `Theme: ${name}`;
  button.setAttribute('aria-label', `Theme: ${name}; press for the next of ${themes.join(', ')}`);
  button.value = name;
}
const remembered = rememberedTheme();
setTheme(remembered !== null && themes.includes(remembered) ? remembered : 'auto');
button.addEventListener('click', () => {
  setTheme(themes[(themes.indexOf(button.value) + 1) % themes.length]!);
  rememberTheme(button.value);
});
addEventListener('keydown', event => {
  if (event.key === 'Escape') hideHint();
});
addEventListener('scroll', hideHint, { passive: true });

const show = startFilters(),
  fetchFigure = startSharedFigures();
startContents();
startLanding(place => {
  show(place);
  fetchFigure(place);
});
