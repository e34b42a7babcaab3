// Sections 8 and 9: what masks do over depth, and where two tokens end.
import { call } from '../core';
import { player, select, segments, slider } from '../kit/controls';
import { html } from '../kit/elements';
import { colour, dashes, palette } from '../kit/palette';
import { onRotate, type Camera } from '../kit/scene3d';
import { createChart } from '../views/collapse_chart';
import { drawScene, sceneFigure, type Place } from '../views/collapse_scene';
import { drawCircle, drawMap, type Path, type Portrait } from '../views/equilibria_figures';
import { bold, formula, identifier, m, number, operator, power, row, sub } from './math';
import { coalesced, lab, paragraph, type Section } from './section';

const tokens = 16,
  layers = 40,
  round = 7; // tokens drawn as discs, the others as squares

interface Passed {
  measures: Record<string, Float64Array>;
  mask: { radius: number | null };
  directions: Float64Array; // layers + 1 × N × axes
  positions: Float64Array;
  axes: number;
}

const masks: [string, string][] = [
  ['full', 'full: every token sees all'],
  ['causal', 'causal: those up to itself'],
  ['window:1', 'window: its neighbours'],
  ['onesided:1', 'one-sided: the one before'],
  ['star', 'star: through the first'],
];
const sideColours = [palette.blue, palette.orange];

export const collapse: Section = {
  id: 'collapse',
  title: 'Depth: the mask decides how fast tokens become alike',
  mount({ words: text, figure }, { core }) {
    const chosen = ['full', 'window:1'];
    let variant = 'san+norm',
      layer = 0,
      passed: Passed[] = [];
    const camera: Camera = { azimuth: 0.6, elevation: 0.35 };
    const sides = chosen.map((mask, side) => {
      const drawing = sceneFigure('Tokens on the sphere'),
        title = html('h3', {}),
        choice = select(`depth-mask-${side}`, side === 0 ? 'Left mask' : 'Right mask', masks, value => {
          chosen[side] = value;
          compute();
        });
      onRotate(drawing, camera, () => draw());
      choice.show(mask);
      return { drawing, title, choice, element: html('div', { class: 'side-by-side' }, title, drawing) };
    });
    const chart = createChart(),
      verdict = html('p', { class: 'headline', 'aria-live': 'polite', 'data-testid': 'collapse-verdict' });
    const play = player({
      id: 'depth-layer',
      label: 'Layer',
      max: layers,
      value: 0,
      perSecond: 8,
      onInput: value => {
        layer = value;
        update();
      },
      onStop: () => tell(),
    });
    const variants = segments(
      'depth-variant',
      'Each layer',
      [
        ['san+norm', 'attention, then scaling'],
        ['san', 'attention alone'],
      ],
      value => {
        variant = value;
        compute();
      },
    );
    text.append(
      paragraph(
        'So far one layer. Stacked, every layer replaces a token by a mixture of those it may look at, and mixtures of mixtures grow alike. How fast is a matter of the mask: news must travel through its graph, and the radius is how many layers that takes.',
      ),
      formula(
        'the next X is D times A times X times W V',
        row(
          power(bold('X'), operator('+')),
          operator('='),
          identifier('D'),
          identifier('A'),
          bold('X'),
          sub(identifier('W'), 'V'),
        ),
      ),
      paragraph(
        'A: attention under the mask. D: scaling of every row to norm 1. Wu et al. (2024) prove that without a norm the distance μ to the mean falls exponentially under every mask with a centre; what they prove of the rate is slower for local masks.',
      ),
      sides[0]!.choice.element,
      sides[1]!.choice.element,
      variants.element,
      lab('#collapse', 'All masks, norms and measures in the Lab'),
    );
    figure.append(
      html('div', { class: 'two-figures' }, ...sides.map(side => side.element)),
      html(
        'p',
        { class: 'note', 'data-testid': 'collapse-marks' },
        `A disc is one of tokens 1 to ${round}, a square one of ${round + 1} to ${tokens}, since colours repeat; the thread behind it comes from where it was a layer before.`,
      ),
      html('div', { class: 'under' }, play.element, verdict, chart.element),
    );

    function compute(): void {
      passed = chosen.map(mask =>
        call<Passed>(core, 'collapse', {
          tokens,
          dim: 3,
          layers,
          mask,
          variant,
          norm: 'unit',
          placement: 'post',
          temperature: 0,
          queryKey: 'gaussian',
          value: 'identity',
          start: 'sphere',
          seed: 1,
        }),
      );
      draw();
      tell();
    }
    const relative = (side: number): Float64Array => passed[side]!.measures['relative']!;
    function draw(): void {
      sides.forEach(({ drawing, title }, side) => {
        const { positions, directions, axes, mask } = passed[side]!,
          places = variant === 'san' ? positions : directions;
        title.textContent = `${chosen[side]}, radius ${mask.radius ?? 'none: not connected'}`;
        const at = (of: number, i: number): Place =>
          [0, 1, 2].map(c => places[(of * tokens + i) * axes + c] ?? 0) as unknown as Place;
        drawScene(
          drawing,
          {
            title: `Tokens after layer ${layer} under the mask ${chosen[side]}`,
            size: 300,
            extent: 1.15,
            sphere: 1,
            dots: Array.from({ length: tokens }, (_, i) => ({
              at: at(layer, i),
              colour: colour(i),
              label: `token ${i + 1}`,
              radius: 5.5,
              shape: i >= round ? ('square' as const) : ('round' as const),
              trail: layer > 0 ? [at(layer - 1, i)] : [],
            })),
          },
          camera,
        );
      });
      chart.draw({
        title: 'Distance to the mean by layer',
        xLabel: 'layer',
        xMax: layers,
        width: Math.max(300, Math.min(720, figure.clientWidth || 600)),
        cursor: layer,
        onPick: x => {
          layer = Math.round(x);
          play.show(layer);
          draw();
          tell();
        },
        panels: [
          {
            title: 'μ / ‖X‖: 0 when all tokens are the same',
            scale: 'log',
            low: 1e-6,
            high: 1,
            height: 120,
            series: chosen.map((mask, side) => ({
              label: side === 1 && mask === chosen[0] ? `${mask} (right)` : mask,
              y: relative(side),
              colour: sideColours[side]!,
              dash: dashes[side],
            })),
          },
        ],
      });
    }
    const shownValue = (value: number): string =>
      value < 1e-3 ? value.toExponential(0).replace('-', '−') : value.toPrecision(2);
    function tell(): void {
      verdict.textContent = `After ${layer} ${layer === 1 ? 'layer' : 'layers'}, μ/‖X‖ is ${chosen
        .map((mask, side) => `${shownValue(relative(side)[layer]!)} under ${mask}`)
        .join(' and ')}.`;
    }
    const update = coalesced(draw);
    variants.show(variant);
    layer = 4;
    compute();
    play.show(layer);
    return { redraw: draw, leave: () => play.stop(), remove: () => play.stop() };
  },
};

export const equilibria: Section = {
  id: 'equilibria',
  title: 'Do tokens always collapse? Equilibria',
  mount({ words: text, figure }, { core }) {
    let w = 2,
      first = 85,
      second = 200;
    const steps = 60,
      cells = 61;
    let map: { fates: Uint8Array; names: string[] } | undefined, waiting: ReturnType<typeof setTimeout> | undefined;
    const circle = html('div', { class: 'equilibrium', 'data-testid': 'equilibria-circle-room' }),
      plane = html('div', { class: 'equilibrium', 'data-testid': 'equilibria-map-room' }),
      verdict = html('p', { class: 'headline', 'aria-live': 'polite', 'data-testid': 'equilibria-verdict' });
    const weight = slider({
      id: 'explain-w',
      label: 'w, above the diagonal of W',
      min: 1.1,
      max: 10,
      step: 0.1,
      format: value => value.toFixed(1),
      onInput: value => {
        w = value;
        map = undefined;
        update();
        clearTimeout(waiting);
        waiting = setTimeout(draw, 250);
      },
    });
    const angle = (id: string, label: string, set: (value: number) => void) =>
      slider({
        id,
        label,
        min: 0,
        max: 360,
        step: 1,
        format: value => `${value}°`,
        onInput: value => {
          set(value);
          update();
        },
      });
    const one = angle('explain-a1', 'Token 1 starts at', value => (first = value)),
      two = angle('explain-a2', 'Token 2 starts at', value => (second = value));
    text.append(
      paragraph(
        'With scaling, collapse is not the only end. Two tokens on a circle under a causal mask: token 1 sees only itself and goes to (0, ±1). Token 2 follows it there, or comes to rest at B, apart from it: an equilibrium of full rank (Wu et al. 2024, Theorem 3).',
      ),
      formula(
        'W is the matrix one, w, zero, one; B is minus one over w, minus the square root of one minus one over w squared',
        row(
          identifier('W'),
          operator('='),
          m('mo', { fence: 'true' }, '('),
          m(
            'mtable',
            {},
            m('mtr', {}, m('mtd', {}, number('1')), m('mtd', {}, identifier('w'))),
            m('mtr', {}, m('mtd', {}, number('0')), m('mtd', {}, number('1'))),
          ),
          m('mo', { fence: 'true' }, ')'),
        ),
      ),
      paragraph(
        'Blue is where the tokens stay apart, orange where they collapse. On the left token 1 already stands still; on the right both move, and the blue starts are few.',
      ),
      weight.element,
      one.element,
      two.element,
      lab('#equilibria', 'Layer by layer, with random starts, in the Lab'),
    );
    figure.append(html('div', { class: 'two-figures' }, circle, plane), html('div', { class: 'under' }, verdict));

    function draw(): void {
      const path = call<Path>(core, 'equilibriaPath', w, first, second, 1000);
      const side = path.steps[1]! < 0 ? -1 : 1;
      const portrait = { ...call<Portrait>(core, 'equilibriaPortrait', w, side), side };
      map ??= call<{ fates: Uint8Array; names: string[] }>(core, 'equilibriaMap', w, cells, 500);
      circle.replaceChildren(
        drawCircle(portrait, path, steps, w, degrees => {
          second = Math.round(degrees);
          show();
        }),
      );
      plane.replaceChildren(
        drawMap({ ...map, cells }, path, steps, (a, b) => {
          first = Math.round(a);
          second = Math.round(b);
          show();
        }),
      );
      verdict.textContent = `From ${first}° and ${second}°: ${
        { collapsed: 'the tokens collapse into one', apart: 'the tokens stay apart' }[path.fate] ?? path.fate
      }.`;
    }
    function show(): void {
      one.show(first);
      two.show(second);
      weight.show(w);
      draw();
    }
    const update = coalesced(draw);
    show();
    return { redraw: draw, remove: () => clearTimeout(waiting) };
  },
};
