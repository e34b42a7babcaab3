// Choosing among cards, and the list of contents, which says where one is.
import { html } from '../src/kit/elements';

// Buttons of one kind that are pressed are alternatives; kinds restrict each other. Returns what shows a card again.
export function startFilters(): (place: HTMLElement) => void {
  const form = document.querySelector<HTMLFormElement>('.filters');
  if (!form) return () => {};
  const cards = [...document.querySelectorAll<HTMLElement>('.cards > .card')],
    buttons = [...form.querySelectorAll<HTMLButtonElement>('[aria-pressed]')],
    count = form.querySelector('output')!,
    reset = form.querySelector<HTMLButtonElement>('[type="reset"]')!;
  const kind = (button: Element): string => button.closest<HTMLElement>('[data-filter]')!.dataset.filter!;
  const update = (): void => {
    const wanted = new Map<string, string[]>();
    for (const button of buttons) {
      if (button.getAttribute('aria-pressed') !== 'true') continue;
      wanted.set(kind(button), [...(wanted.get(kind(button)) ?? []), button.value]);
    }
    let shown = 0;
    for (const card of cards) {
      const fits = [...wanted].every(([name, values]) => values.includes(card.dataset[name]!));
      card.hidden = !fits;
      shown += Number(fits);
      const listed = document.querySelector<HTMLElement>(`[data-card="${CSS.escape(card.id)}"]`);
      if (listed) listed.hidden = !fits;
    }
    for (const section of document.querySelectorAll<HTMLElement>('.cards'))
      section.hidden = !section.querySelector('.card:not([hidden])');
    count.textContent = shown === cards.length ? `All ${shown} claims` : `${shown} of ${cards.length} claims`;
    reset.hidden = wanted.size === 0;
  };
  const clear = (): void => {
    for (const button of buttons) button.setAttribute('aria-pressed', 'false');
    update();
  };
  for (const button of buttons) {
    button.addEventListener('click', () => {
      button.setAttribute('aria-pressed', String(button.getAttribute('aria-pressed') !== 'true'));
      update();
    });
  }
  form.addEventListener('reset', () => {
    clear();
    buttons[0]?.focus();
  });
  return place => {
    if (place.closest('[hidden]')) clear();
  };
}

// A figure that several cards share comes to the card that asks for it; where it was, a link to it stays.
function fetchFigure(link: HTMLAnchorElement): HTMLElement | null {
  const figure = document.getElementById(decodeURIComponent(link.hash.slice(1)));
  if (!figure?.closest('.card')) return null;
  const here = document.createComment('');
  link.replaceWith(here);
  figure.replaceWith(link);
  here.replaceWith(figure);
  return figure;
}

export function startSharedFigures(): (place: HTMLElement) => void {
  addEventListener('click', event => {
    const link = (event.target as Element).closest<HTMLAnchorElement>('a.see'),
      figure = link && fetchFigure(link);
    if (!figure) return;
    event.preventDefault();
    figure.tabIndex = -1;
    figure.focus({ preventScroll: true });
  });
  // Whoever comes to a card finds its first figure there.
  return place => {
    const link =
      place.matches('.card') && !place.querySelector('figure') && place.querySelector<HTMLAnchorElement>('a.see');
    if (link) fetchFigure(link);
  };
}

export function startContents(): void {
  const nav = document.querySelector<HTMLElement>('.contents');
  if (!nav) return;
  const list = nav.querySelector('ul')!,
    links = new Map<string, HTMLAnchorElement>();
  for (const link of nav.querySelectorAll<HTMLAnchorElement>('a')) links.set(link.hash.slice(1), link);
  const fold = html('button', { type: 'button', 'aria-expanded': 'false' }, 'Contents');
  nav.insertBefore(fold, list);
  const open = (yes: boolean): void => fold.setAttribute('aria-expanded', String(yes));
  fold.addEventListener('click', () => open(fold.getAttribute('aria-expanded') !== 'true'));
  list.addEventListener('click', event => {
    if ((event.target as Element).closest('a')) open(false);
  });
  addEventListener('keydown', event => {
    if (event.key !== 'Escape' || fold.getAttribute('aria-expanded') !== 'true') return;
    open(false);
    fold.focus();
  });
  // The last place whose top has passed the upper third of the screen.
  const places = [...links.keys()].map(id => document.getElementById(id)).filter(place => place !== null);
  let current: HTMLAnchorElement | undefined,
    waiting = false;
  const mark = (): void => {
    waiting = false;
    let last: HTMLElement | undefined;
    for (const place of places) {
      if (place.closest('[hidden]')) continue;
      if (place.getBoundingClientRect().top > innerHeight / 3) break;
      last = place;
    }
    const link = last && links.get(last.id);
    if (link === current) return;
    current?.removeAttribute('aria-current');
    current = link;
    link?.setAttribute('aria-current', 'location');
    fold.textContent = link ? `Contents: ${link.lastChild!.textContent}` : 'Contents';
    if (link && getComputedStyle(nav).overflowY === 'auto') {
      const at = link.offsetTop - nav.offsetTop;
      if (at < nav.scrollTop || at + link.offsetHeight > nav.scrollTop + nav.clientHeight)
        nav.scrollTop = at - nav.clientHeight / 2;
    }
  };
  const later = (): void => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(mark);
  };
  addEventListener('scroll', later, { passive: true });
  addEventListener('resize', later, { passive: true });
  mark();
}
