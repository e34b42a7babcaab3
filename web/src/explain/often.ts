// Section 6: how often random keys are hidden. Every cell is drawn and decided here, while the reader looks on.
import { call } from '../core';
import { button, segments } from '../kit/controls';
import { html, svg } from '../kit/elements';
import { ordered } from '../kit/palette';
import type { KeySet } from '../views/select_model';
import { lab, note, paragraph, type Section } from './section';
import { stateOf } from './stage';

const ns = [5, 10, 15, 20, 30, 40, 50, 60],
  ds = [3, 4, 5, 6, 8, 10, 12, 15],
  draws = 20,
  seed = 0,
  budget = 12; // milliseconds of a frame
const cellWidth = 44,
  cellHeight = 34,
  left = 46,
  top = 10;

interface Cell {
  fraction: number;
  any: number;
  robustFraction: number;
  unselectable: number;
  robustUnselectable: number;
}
interface Draw {
  set: KeySet;
  coordinates: Float64Array;
  share: number;
}
const percent = (share: number): string => `${(100 * share).toFixed(0)} %`;
const words: Record<string, string> = {
  none: 'without a norm',
  center: 'after projection',
  rmsnorm: 'after scaling',
  layernorm: 'after LayerNorm',
};

export const often: Section = {
  id: 'often',
  title: 'How often does it happen?',
  mount({ words: text, figure }, { core }) {
    let norm = 'none',
      reading: 'fraction' | 'any' = 'fraction',
      cells: (Cell | undefined)[] = [],
      row = 0,
      column = ns.indexOf(20),
      draw = 0,
      frame = 0;

    const map = svg('svg', {
      viewBox: `0 0 ${left + cellWidth * ns.length + 8} ${top + cellHeight * ds.length + 44}`,
      class: 'heat',
      tabindex: '0',
      role: 'group',
      'aria-label': 'Heat map: keys across, dimensions down. Arrow keys choose a cell.',
      'data-testid': 'often-map',
    });
    const told = html('p', { class: 'headline', 'aria-live': 'polite', 'data-testid': 'often-cell' }),
      about = html('p', { class: 'note', 'data-testid': 'often-draw-words' });
    const cloud = svg('svg', {
      viewBox: '-112 -112 224 224',
      class: 'cloud',
      role: 'img',
      'aria-label': 'One draw of the chosen cell',
      'data-testid': 'often-draw',
    });
    const marks = html('p', { class: 'note', 'data-testid': 'often-marks' });
    const norms = segments(
      'often-norm',
      'Keys',
      [
        ['none', 'no norm'],
        ['center', 'projection'],
        ['rmsnorm', 'scaling'],
        ['layernorm', 'LayerNorm'],
      ],
      value => {
        norm = value;
        begin();
      },
    );
    const readings = segments(
      'often-reading',
      'Shown',
      [
        ['fraction', 'share of keys'],
        ['any', 'draws with any'],
      ],
      value => {
        reading = value as typeof reading;
        show();
      },
    );
    const next = button('often-next', 'Another draw of this cell', () => {
      draw = (draw + 1) % draws;
      show();
    });
    text.append(
      paragraph(
        'Draw n keys at random in d dimensions and decide every one. With many keys in few dimensions most are hidden: space runs out of corners. With few keys in many dimensions hardly any are. Real models sit in between: their heads are narrow, their texts long.',
      ),
      paragraph(
        'The paper’s heat map counts draws with at least one hidden key, while its caption says it shows the share of keys. Both readings are here. Scaling puts keys on a sphere, of which every point is a corner of the hull: what the map still counts then are keys so close together, as on the circle of d = 3, that rounding pushes one inside.',
      ),
      norms.element,
      readings.element,
      note(`Gaussian keys, ${draws} draws per cell, float32, seed ${seed}: the numbers of normscope heatmap.`),
      lab('#select', 'Decide keys of your own in the Lab'),
    );
    figure.append(
      html(
        'div',
        { class: 'two-figures' },
        html('div', {}, map, marks),
        html('div', { class: 'cloud-room' }, cloud, about, next),
      ),
      html('div', { class: 'under' }, told),
    );

    const options = (at: number) => ({
      n: ns[at % ns.length]!,
      d: ds[Math.floor(at / ns.length)]!,
      draws,
      norm,
      seed,
    });
    // Few keys first: they are quick, and the picture fills from the left.
    const order = Array.from(
      { length: ns.length * ds.length },
      (_, i) => (i % ds.length) * ns.length + Math.floor(i / ds.length),
    );
    function begin(): void {
      cancelAnimationFrame(frame);
      cells = [];
      let at = 0;
      show();
      const fill = (): void => {
        const end = performance.now() + budget;
        while (at < order.length && performance.now() < end) {
          const cell = order[at++]!;
          cells[cell] ??= call<Cell>(core, 'heatmapCell', options(cell));
        }
        drawMap();
        tell();
        if (at < order.length) frame = requestAnimationFrame(fill);
      };
      frame = requestAnimationFrame(fill);
    }

    function drawMap(): void {
      const pieces: SVGElement[] = [];
      order.forEach(at => {
        const c = at % ns.length,
          r = Math.floor(at / ns.length),
          cell = cells[at],
          value = cell?.[reading];
        const x = left + c * cellWidth,
          y = top + r * cellHeight;
        const rect = svg(
          'rect',
          {
            x,
            y,
            width: cellWidth - 1.5,
            height: cellHeight - 1.5,
            class: 'cell',
            fill: value === undefined ? 'var(--panel)' : ordered(value),
            'data-value': value === undefined ? null : String(value),
            'data-testid': `often-${ns[c]}-${ds[r]}`,
          },
          svg('title', {}, `n = ${ns[c]}, d = ${ds[r]}${value === undefined ? '' : `: ${percent(value)}`}`),
        );
        rect.addEventListener('click', () => choose(r, c));
        pieces.push(rect);
        if (value !== undefined)
          pieces.push(
            svg(
              'text',
              {
                x: x + cellWidth / 2,
                y: y + cellHeight / 2 + 4,
                'text-anchor': 'middle',
                class: 'cell-value',
                fill: value > 0.7 ? '#111' : '#fff',
              },
              (100 * value).toFixed(0),
            ),
          );
      });
      const bottom = top + cellHeight * ds.length;
      ns.forEach((n, c) =>
        pieces.push(
          svg('text', { x: left + (c + 0.5) * cellWidth, y: bottom + 15, 'text-anchor': 'middle' }, String(n)),
        ),
      );
      ds.forEach((d, r) =>
        pieces.push(svg('text', { x: left - 8, y: top + (r + 0.5) * cellHeight + 4, 'text-anchor': 'end' }, String(d))),
      );
      pieces.push(
        svg('text', { x: left + (ns.length * cellWidth) / 2, y: bottom + 36, 'text-anchor': 'middle' }, 'keys n'),
        svg('text', { x: 12, y: top + 12, 'text-anchor': 'middle' }, 'd'),
        svg('rect', {
          x: left + column * cellWidth - 1,
          y: top + row * cellHeight - 1,
          width: cellWidth + 0.5,
          height: cellHeight + 0.5,
          class: 'chosen-cell',
        }),
      );
      map.replaceChildren(...pieces);
    }

    function drawCloud(): void {
      const at = row * ns.length + column;
      const { set, coordinates, share } = call<Draw>(core, 'heatmapDraw', { ...options(at), draw });
      let most = 0;
      for (const value of coordinates) most = Math.max(most, Math.abs(value));
      cloud.replaceChildren(
        svg('path', { d: 'M-108 0H108M0 -108V108', class: 'axis' }),
        ...set.keys.map((key, i) => {
          const state = stateOf(key);
          return svg(
            'circle',
            {
              cx: (100 * coordinates[2 * i]!) / most,
              cy: (-100 * coordinates[2 * i + 1]!) / most,
              r: 4.5,
              class: `dot ${state === 'tied up to rounding' ? 'tied' : state}`,
            },
            svg('title', {}, `key ${i}: ${state}`),
          );
        }),
      );
      const { n, d } = options(at);
      about.textContent =
        `Draw ${draw} of n = ${n}, d = ${d}, ${words[norm]}: ${set.counts.unselectable} of ${n} keys hidden (hollow). ` +
        `It is a shadow: the two directions shown hold ${percent(share)} of the variance.`;
    }

    function tell(): void {
      const cell = cells[row * ns.length + column];
      if (!cell) {
        told.textContent = 'Deciding …';
        return;
      }
      const rounding = cell.unselectable - cell.robustUnselectable;
      told.textContent =
        `n = ${ns[column]}, d = ${ds[row]}, ${words[norm]}: ${percent(cell.fraction)} of keys hidden; ${percent(cell.any)} of draws have one.` +
        (rounding > 0 ? ` ${rounding} of these ${cell.unselectable} keys are tied up to rounding.` : '');
    }
    function show(): void {
      marks.textContent =
        reading === 'fraction'
          ? `In a cell: how many per cent of the keys of ${draws} draws are hidden.`
          : `In a cell: how many per cent of ${draws} draws have a hidden key.`;
      drawMap();
      drawCloud();
      tell();
    }
    function choose(r: number, c: number): void {
      row = Math.min(ds.length - 1, Math.max(0, r));
      column = Math.min(ns.length - 1, Math.max(0, c));
      draw = 0;
      show();
    }
    map.addEventListener('keydown', event => {
      const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
      if (!step) return;
      event.preventDefault();
      choose(row + step[0]!, column + step[1]!);
    });
    norms.show(norm);
    readings.show(reading);
    begin();
    return { redraw: show, remove: () => cancelAnimationFrame(frame) };
  },
};
