// The explanation: one scrolling page, eleven sections, every number computed by the core while one reads.
import '../views/select.css';
import '../kit/panel.css';
import './explain.css';
import { html } from '../kit/elements';
import type { View } from '../view';
import { found } from './audit';
import { collapse, equilibria } from './depth';
import { both, hull, projection, scaling, shadow } from './geometry';
import { mountHero } from './hero';
import { often } from './often';
import type { Context, Mounted, Section } from './section';
import { majority } from './training';
import { model } from './words';

const sections: Section[] = [
  shadow,
  hull,
  projection,
  scaling,
  both,
  often,
  model,
  collapse,
  equilibria,
  majority,
  found,
];

const view: View = {
  id: 'explain',
  label: 'Explanation',
  mount(root, { core, state }) {
    const motion = matchMedia('(prefers-reduced-motion: reduce)');
    const context: Context = { core, still: () => motion.matches };
    const mounted = new Map<string, Mounted>();
    const hero = html('section', { class: 'hero', 'aria-label': 'A hidden key', 'data-testid': 'hero' });
    const frames = sections.map((section, i) => {
      const words = html('div', { class: 'words' }),
        figure = html('div', { class: 'figure' });
      const element = html(
        'section',
        { class: 'chapter', id: `explain-${section.id}`, tabindex: '-1', 'data-testid': `section-${section.id}` },
        html(
          'h2',
          { id: `title-${section.id}` },
          html('span', { class: 'chapter-number' }, String(i + 1)),
          ` ${section.title}`,
        ),
        html('div', { class: 'columns' }, words, figure),
      );
      element.setAttribute('aria-labelledby', `title-${section.id}`);
      return { section, words, figure, element };
    });
    const contents = html(
      'nav',
      { class: 'contents', 'aria-label': 'Sections' },
      html(
        'ol',
        {},
        ...sections.map(section => {
          const entry = html(
            'a',
            { href: `#explain?section=${section.id}`, 'data-testid': `to-${section.id}` },
            section.title,
          );
          entry.addEventListener('click', event => {
            event.preventDefault();
            state.set({ section: section.id }, { replace: false });
            go(section.id);
          });
          return html('li', {}, entry);
        }),
      ),
    );
    const page = html(
      'div',
      { class: 'explain', 'data-testid': 'explain-view' },
      hero,
      contents,
      ...frames.map(({ element }) => element),
    );
    root.replaceChildren(page);

    // Pointing at a key lights all that speaks of it.
    const light = (event: Event): void => {
      const key = (event.target as Element | null)?.closest?.('[data-key]')?.getAttribute('data-key');
      if (key) page.dataset.lit = key;
      else delete page.dataset.lit;
    };
    page.addEventListener('pointerover', light);
    page.addEventListener('pointerleave', () => delete page.dataset.lit);

    function mount(frame: (typeof frames)[number]): void {
      const { section, words, figure, element } = frame;
      if (mounted.has(section.id)) return;
      try {
        mounted.set(section.id, section.mount({ words, figure }, context));
      } catch (error) {
        mounted.set(section.id, {});
        words.append(
          html('p', { class: 'failure', role: 'alert' }, error instanceof Error ? error.message : String(error)),
        );
      }
      element.dataset.mounted = '';
    }
    function mountAll(): void {
      for (const frame of frames) mount(frame);
    }
    function printed(): void {
      mountAll();
      redraw();
    }
    function go(id: string): void {
      const index = sections.findIndex(section => section.id === id);
      if (index < 0) return;
      // What stands above must have its height, or the reader lands elsewhere.
      for (const frame of frames.slice(0, index + 1)) mount(frame);
      const { element } = frames[index]!;
      element.scrollIntoView({ block: 'start' });
      element.focus({ preventScroll: true });
    }

    const near = new IntersectionObserver(
      entries => {
        for (const entry of entries) {
          const frame = frames.find(({ element }) => element === entry.target)!;
          if (entry.isIntersecting) mount(frame);
          else mounted.get(frame.section.id)?.leave?.();
        }
      },
      { rootMargin: '600px 0px' },
    );
    for (const { element } of frames) near.observe(element);

    mounted.set('', mountHero(hero, context));
    const redraw = (): void => {
      for (const each of mounted.values()) each.redraw?.();
    };
    let asked = 0;
    const resized = (): void => {
      cancelAnimationFrame(asked);
      asked = requestAnimationFrame(redraw);
    };
    const themed = new MutationObserver(redraw),
      dark = matchMedia('(prefers-color-scheme: dark)');
    themed.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
    dark.addEventListener('change', redraw);
    addEventListener('resize', resized);
    addEventListener('beforeprint', printed);
    addEventListener('afterprint', redraw);
    state.onChange(() => go(state.get('section', '')));
    go(state.get('section', ''));
    return () => {
      near.disconnect();
      themed.disconnect();
      dark.removeEventListener('change', redraw);
      removeEventListener('resize', resized);
      removeEventListener('beforeprint', printed);
      removeEventListener('afterprint', redraw);
      cancelAnimationFrame(asked);
      for (const each of mounted.values()) each.remove?.();
    };
  },
};
export default view;
