// Tokens pass through layers of attention: where they stand, how alike they become, under which mask and norm.
import { call } from '../core';
import { player, select, slider, textWithExamples } from '../kit/controls';
import { csv } from '../kit/csv';
import { degrees, numberOf, radians, scientific } from '../kit/numbers';
import { dashes, ordered, palette } from '../kit/palette';
import { onRotate } from '../kit/scene3d';
import { html, svg } from '../kit/elements';
import { figure, layout, numbersTable, onResize } from '../kit/panel';
import type { View } from '../view';
import { createChart, emptyFigure, type Panel } from './collapse_chart';
import { drawScene, sceneFigure, type Place } from './collapse_scene';

interface Assumption {
  name: string;
  met: boolean;
  detail: string;
}
interface Theorem {
  assumptions: Assumption[];
  bound: Float64Array | null;
  violations: number;
}
interface Collapse {
  measures: Record<string, Float64Array>; // by layer, 0: the start
  leastWeight: Float64Array;
  emptyRows: number;
  undefinedRows: number;
  rate: { factor: number; layers: number };
  theory: {
    epsilon: number;
    theorem1: Theorem;
    theorem2Diameter: Theorem;
    theorem2Radius: Theorem;
    corollary1: Theorem;
  };
  mask: { allowed: Uint8Array; edges: number; centres: number; radius: number | null; diameter: number | null };
  attention: Float32Array; // layers × N × N
  axes: number;
  shownShare: number;
  directions: Float64Array; // layers + 1 × N × axes
  positions: Float64Array;
  temperature: number;
}

const masks: [string, string][] = [
  ['full', 'full: every token'],
  ['causal', 'causal: up to itself'],
  ['window:1', 'window:1: neighbours'],
  ['onesided:1', 'onesided:1: itself and the one before'],
  ['prefix:4', 'prefix:4: causal, and the first 4'],
  ['dilated:2,3', 'dilated:2,3: every third'],
  ['strided:4', 'strided:4'],
  ['global+window', 'global+window'],
  ['block:4', 'block:4: within blocks'],
  ['star', 'star: through the first'],
  ['random:0.2', 'random:0.2: by chance'],
  ['causal&window:3', 'causal&window:3: both'],
  ['self', 'self: only itself'],
];
const variants: [string, string][] = [
  ['san', 'attention only (SAN)'],
  ['san+skip', 'attention + skip'],
  ['san+norm', 'attention + norm'],
  ['san+skip+norm', 'attention + skip + norm'],
  ['full', 'full: also feed-forward'],
];
const norms: [string, string][] = [
  ['unit', 'unit: scaling to 1 (Wu et al.)'],
  ['layernorm', 'layernorm'],
  ['rmsnorm', 'rmsnorm: scaling to √d'],
  ['center', 'center: projection only'],
  ['published', 'published: scaling to 1/√d'],
  ['xsigma', 'xsigma: x over σ'],
  ['dyt', 'dyt: tanh'],
];
const temperatures: [string, string][] = [
  ['0', 'd'],
  ['0.015625', '1/64'],
  ['0.125', '1/8'],
  ['1', '1'],
  ['8', '8'],
  ['64', '64'],
  ['4096', '4096'],
];
const mostTrail = 2,
  layersPerSecond = 6;

const defaults: Record<string, string> = {
  n: '16',
  d: '3',
  layers: '40',
  mask: 'causal',
  variant: 'san+norm',
  norm: 'unit',
  place: 'post',
  temp: '0',
  qk: 'gaussian',
  value: 'identity',
  start: 'sphere',
  seed: '1',
  layer: '2',
  show: 'directions',
  yaw: '35',
  pitch: '20',
};

const view: View = {
  id: 'collapse',
  label: 'Collapse',
  mount(root, { core, state }) {
    const { controls, figures, summary, numbers } = layout(
      root,
      'collapse',
      'How tokens become alike with depth',
      'Tokens start at random and pass through layers of attention. μ is their distance from all being equal, φ the least cosine of two of ' +
        'them. A mask says who attends to whom; a norm keeps their length.',
    );
    const get = (key: string): string => state.get(key, defaults[key]!);
    const count = (key: string, low: number, high: number): number =>
      Math.round(numberOf(get(key), Number(defaults[key]), low, high));
    let result: Collapse | null = null;
    const camera = { azimuth: 0, elevation: 0 },
      flatCamera = { azimuth: 0, elevation: 0 };
    const aim = (): void => {
      camera.azimuth = radians(numberOf(get('yaw'), 35));
      camera.elevation = radians(numberOf(get('pitch'), 20, -90, 90));
    };
    aim();

    const set =
      (key: string) =>
      (value: string | number): void =>
        change({ [key]: String(value) });
    const fields = {
      n: slider({ id: 'collapse-n', label: 'Tokens N', min: 2, max: 64, step: 1, onInput: set('n') }),
      d: slider({
        id: 'collapse-d',
        label: 'Dimensions d',
        hint: '2: circle, 3: sphere',
        min: 2,
        max: 32,
        step: 1,
        onInput: set('d'),
      }),
      layers: slider({
        id: 'collapse-layers',
        label: 'Layers',
        min: 1,
        max: 128,
        step: 1,
        onInput: set('layers'),
      }),
      mask: textWithExamples('collapse-mask', 'Mask', masks, defaults.mask!, set('mask')),
      variant: select('collapse-variant', 'Block', variants, set('variant')),
      norm: select('collapse-norm', 'Norm', norms, set('norm')),
      place: select(
        'collapse-place',
        'The norm stands',
        [
          ['post', 'after attention (post)'],
          ['pre', 'before it (pre)'],
          ['sandwich', 'on both sides (sandwich)'],
        ],
        set('place'),
      ),
      temp: select('collapse-temp', 'Temperature d_QK', temperatures, set('temp')),
      qk: select(
        'collapse-qk',
        'Query and key weights',
        [
          ['gaussian', 'gaussian'],
          ['zero', 'zero: uniform attention'],
          ['identity', 'identity'],
          ['orthogonal', 'orthogonal'],
        ],
        set('qk'),
      ),
      value: select(
        'collapse-value',
        'Value weights',
        [
          ['identity', 'identity'],
          ['orthogonal', 'orthogonal'],
          ['gaussian', 'gaussian'],
          ['jordan', 'Jordan block: 1, and w above'],
        ],
        value => change({ value: value === 'jordan' ? 'jordan:2' : value }),
      ),
      w: slider({
        id: 'collapse-w',
        label: 'w of the Jordan block',
        min: 0,
        max: 20,
        step: 0.1,
        onInput: value => change({ value: `jordan:${value}` }),
      }),
      start: select(
        'collapse-start',
        'Tokens start',
        [
          ['sphere', 'on the sphere'],
          ['gaussian', 'gaussian'],
        ],
        set('start'),
      ),
      seed: slider({ id: 'collapse-seed', label: 'Seed', min: 0, max: 99, step: 1, onInput: set('seed') }),
      show: select(
        'collapse-show',
        'Drawn',
        [
          ['directions', 'directions, at length 1'],
          ['positions', 'positions, longest at 1'],
        ],
        value => {
          state.set({ show: value });
          drawLayer();
        },
      ),
    };
    controls.append(...Object.values(fields).map(field => field.element));

    const scene = figure({ id: 'collapse-scene', name: 'collapse-tokens', title: 'Tokens', csv: tokensCsv });
    const curves = figure({ id: 'collapse-curves', name: 'collapse-measures', title: 'By layer', csv: measuresCsv });
    const chart = createChart();
    curves.show(chart.element);
    const maskFigure = figure({
      id: 'collapse-attention',
      name: 'collapse-attention',
      title: 'Mask and attention',
      csv: attentionCsv,
    });
    const theory = html('details', { class: 'depth-theory', 'data-testid': 'collapse-theory' });
    figures.append(html('div', {}, scene.element, maskFigure.element), curves.element);
    numbers.after(theory);
    const layer = player({
      id: 'collapse-layer',
      label: 'Layer',
      max: 40,
      value: 0,
      perSecond: layersPerSecond,
      onInput: value => {
        state.set({ layer: String(value) });
        drawLayer();
      },
      onStop: say,
    });
    scene.foot.append(layer.element);
    const space = sceneFigure('Tokens');
    scene.show(space);
    onRotate(space, camera, () => {
      state.set({ yaw: degrees(camera.azimuth), pitch: degrees(camera.elevation) });
      drawScenery();
    });

    function readControls(): void {
      for (const key of ['n', 'd', 'layers'] as const) fields[key].show(Number(get(key)));
      for (const key of ['mask', 'variant', 'norm', 'place', 'temp', 'qk', 'start', 'show'] as const)
        fields[key].show(get(key));
      fields.seed.show(Number(get('seed')));
      const jordan = /^jordan:(.*)$/.exec(get('value'));
      fields.value.show(jordan ? 'jordan' : get('value'));
      fields.w.element.hidden = !jordan;
      if (jordan) fields.w.show(Number(jordan[1]));
      const normed = get('variant') !== 'san' && get('variant') !== 'san+skip';
      fields.norm.element.hidden = fields.place.element.hidden = !normed;
    }

    let asked = 0;
    function change(values: Record<string, string>): void {
      state.set(values);
      readControls();
      cancelAnimationFrame(asked); // one run per frame, however fast the slider moves
      asked = requestAnimationFrame(compute);
    }

    // Which control a sentence of the core speaks of.
    function blame(sentence: string): keyof typeof fields {
      if (/^Mask |mask/i.test(sentence)) return 'mask';
      if (/variant/.test(sentence)) return 'variant';
      if (/placement/.test(sentence)) return 'place';
      if (/norm '/i.test(sentence)) return 'norm';
      if (/seed/i.test(sentence)) return 'seed';
      if (/start/.test(sentence)) return 'start';
      if (/jordan/.test(sentence)) return 'w';
      if (/temperature/.test(sentence)) return 'temp';
      if (/dimensions/.test(sentence)) return 'd';
      if (/tokens (is|must)/.test(sentence)) return 'n';
      if (/number of layers/.test(sentence)) return 'layers';
      return 'value';
    }

    function compute(): void {
      for (const field of Object.values(fields)) field.error(null);
      try {
        result = call<Collapse>(core, 'collapse', {
          tokens: Number(get('n')),
          dim: Number(get('d')),
          layers: Number(get('layers')),
          mask: get('mask'),
          variant: get('variant'),
          norm: get('norm'),
          placement: get('place'),
          temperature: Number(get('temp')),
          queryKey: get('qk'),
          value: get('value'),
          start: get('start'),
          seed: Number(get('seed')),
        });
      } catch (error) {
        const { message } = error as Error;
        fields[blame(message)].error(message);
        summary.textContent = 'These settings cannot be run; the figures are those before.';
        return;
      }
      layer.show(count('layer', 0, 200), layers());
      drawLayer();
      drawTheory();
      say();
    }

    const layers = (): number => (result ? result.leastWeight.length : 1);
    const at = (): number => Math.min(layers(), count('layer', 0, 200));
    const tokens = (): number => (result ? result.directions.length / result.axes / (layers() + 1) : 0);

    function drawLayer(): void {
      if (!result) return;
      drawScenery();
      drawCurves();
      drawMask();
      writeNumbers();
    }

    function drawScenery(): void {
      if (!result) return;
      const { axes } = result,
        n = tokens(),
        now = at();
      const places = get('show') === 'positions' ? result.positions : result.directions;
      const place = (t: number, i: number): Place => {
        const from = (t * n + i) * axes;
        return axes === 2
          ? [0, places[from]!, places[from + 1]!]
          : [places[from]!, places[from + 1]!, places[from + 2]!];
      };
      const trail = Math.min(now, n > 24 ? 1 : mostTrail);
      const dots = Array.from({ length: n }, (_, i) => ({
        at: place(now, i),
        colour: ordered(n > 1 ? i / (n - 1) : 0),
        label: `token ${i + 1} of ${n}`,
        radius: n > 32 ? 4 : 5.5,
        trail: Array.from({ length: trail }, (_, k) => place(now - trail + k, i)),
      }));
      const d = count('d', 2, 64);
      scene.title(d === 2 ? 'Tokens on the circle' : d === 3 ? 'Tokens on the sphere' : `Tokens of ${d} dimensions`);
      const captions = ['First token blue, last yellow; lines: where they were.'];
      if (d > 3)
        captions.push(
          `The 3 principal directions of ${d}: ${(100 * result.shownShare).toFixed(1)} % of squared length.`,
        );
      const flat = axes === 2;
      drawScene(
        space,
        {
          title: `${n} tokens at layer ${now}`,
          size: 400,
          extent: 1.12,
          dots,
          sphere: 1,
          captions,
          ...(flat ? {} : { axes: d === 3 ? ['x₁', 'x₂', 'x₃'] : (['1st', '2nd', '3rd'] as [string, string, string]) }),
        },
        flat ? flatCamera : camera,
      );
    }

    function panels(): Panel[] {
      const { measures, theory: bounds } = result!;
      const distance: Panel = {
        title: 'Distance from all equal',
        scale: 'log',
        low: 1e-17,
        height: 190,
        series: [
          { label: 'μ', y: measures.mu!, colour: palette.blue },
          { label: 'μ/‖X‖', y: measures.relative!, colour: palette.orange, dash: dashes[1] },
        ],
      };
      if (bounds.theorem1.bound)
        distance.series.push({
          label: 'bound of Theorem 1 on μ',
          y: bounds.theorem1.bound,
          colour: palette.grey,
          dash: dashes[2],
        });
      const relative: [string, Float64Array | null, string, string][] = [
        ['Corollary 1', bounds.corollary1.bound, palette.grey, dashes[2]],
        ['Theorem 2, r the diameter', bounds.theorem2Diameter.bound, palette.green, dashes[2]],
        ['Theorem 2, r the radius', bounds.theorem2Radius.bound, palette.purple, dashes[3]],
      ];
      for (const [name, y, colour, dash] of relative)
        if (y) distance.series.push({ label: `bound of ${name}, on μ/‖X‖`, y, colour, dash });
      return [
        distance,
        {
          title: 'Cosines of two tokens',
          scale: 'linear',
          low: -1,
          high: 1,
          height: 110,
          series: [
            { label: 'φ, the least', y: measures.min_cosine!, colour: palette.green },
            { label: 'mean', y: measures.mean_cosine!, colour: palette.purple, dash: dashes[1] },
          ],
        },
        {
          title: 'Rank',
          scale: 'linear',
          low: 1,
          whole: true,
          height: 110,
          series: [
            { label: 'numerical', y: measures.rank!, colour: palette.blue },
            { label: 'effective', y: measures.effective_rank!, colour: palette.vermillion, dash: dashes[1] },
          ],
        },
      ];
    }
    function drawCurves(): void {
      chart.draw({
        title: 'μ, cosines and ranks by layer',
        xLabel: 'layer',
        xMax: layers(),
        width: curves.width(),
        panels: panels(),
        cursor: at(),
        onPick: x => {
          layer.stop();
          layer.show(Math.round(x));
          state.set({ layer: String(Math.round(x)) });
          drawLayer();
          say();
        },
      });
    }

    function drawMask(): void {
      const { mask, attention } = result!,
        n = tokens(),
        now = at();
      const side = 200,
        cell = side / n,
        left = 20,
        top = 18;
      const drawing = emptyFigure(
        420,
        side + 46,
        `Mask of ${n} tokens with ${mask.edges} edges, attention ${now > 0 ? `into layer ${now}` : 'of layer 1'}`,
      );
      const levels = Array.from({ length: 13 }, () => ''); // weights in twelfths, one path each
      const which = Math.max(0, now - 1);
      for (let i = 0; i < n; ++i) {
        for (let j = 0; j < n; ++j) {
          if (!mask.allowed[i * n + j]) continue;
          const weight = attention[(which * n + i) * n + j]!;
          const square = `M${(left + cell * j).toFixed(2)} ${(top + cell * i).toFixed(2)}h${cell.toFixed(2)}v${cell.toFixed(2)}h-${cell.toFixed(2)}Z`;
          levels[0] += square;
          const level = Math.min(12, Math.round(12 * Math.sqrt(weight)));
          if (level > 0) levels[level] += square;
        }
      }
      levels.forEach((d, level) => {
        if (d)
          drawing.append(
            svg('path', {
              d,
              fill: level === 0 ? 'currentColor' : palette.blue,
              'fill-opacity': level === 0 ? 0.1 : (level / 12).toFixed(2),
              'shape-rendering': 'crispEdges',
            }),
          );
      });
      drawing.append(
        svg('rect', {
          x: left,
          y: top,
          width: side,
          height: side,
          fill: 'none',
          stroke: 'currentColor',
          'stroke-opacity': 0.5,
        }),
        svg('text', { x: left, y: top - 6 }, 'attended to →'),
        svg('text', { x: 12, y: top, transform: `rotate(-90 12 ${top})`, 'text-anchor': 'end' }, '← token'),
        svg(
          'text',
          { x: left, y: top + side + 18, 'fill-opacity': 0.85 },
          'Grey: allowed. Blue: attention weight (its root).',
        ),
      );
      const facts: [string, string][] = [
        ['edges', `${mask.edges} of ${n * n}`],
        ['centres', String(mask.centres)],
        ['radius', mask.radius === null ? 'none' : String(mask.radius)],
        ['diameter', mask.diameter === null ? 'infinite' : String(mask.diameter)],
        ['least weight', now > 0 ? scientific(result!.leastWeight[now - 1]!) : '–'],
      ];
      facts.forEach(([name, value], i) =>
        drawing.append(
          svg('text', { x: left + side + 18, y: top + 16 + 22 * i, 'fill-opacity': 0.8 }, name),
          svg('text', { x: left + side + 98, y: top + 16 + 22 * i, 'font-weight': 600 }, value),
        ),
      );
      maskFigure.show(drawing);
    }

    function writeNumbers(): void {
      const { measures, rate } = result!,
        now = at();
      const value = (name: string): number => measures[name]![now]!;
      const most = Math.min(tokens(), count('d', 2, 64));
      numbersTable(numbers, [
        [`μ at layer ${now}`, scientific(value('mu')), 'collapse-mu', value('mu')],
        ['μ/‖X‖', scientific(value('relative')), 'collapse-relative', value('relative')],
        ['φ, the least cosine', scientific(value('min_cosine')), 'collapse-phi', value('min_cosine')],
        ['Numerical rank', `${value('rank')} of ${most}`, 'collapse-rank', value('rank')],
        ['Effective rank', scientific(value('effective_rank')), 'collapse-effective-rank', value('effective_rank')],
        ['Stable rank', scientific(value('stable_rank')), 'collapse-stable-rank', value('stable_rank')],
        ['Sets of tokens with cosine > 0.999', String(value('clusters')), 'collapse-clusters', value('clusters')],
        [
          'μ/‖X‖ per layer, fitted',
          `× ${rate.factor.toFixed(4)} over ${rate.layers} layer${rate.layers === 1 ? '' : 's'}`,
          'collapse-rate',
          rate.factor,
        ],
        [
          'Rows a norm left at 0, tokens that attend to nothing',
          `${result!.undefinedRows}, ${result!.emptyRows}`,
          'collapse-undefined',
          result!.undefinedRows,
        ],
      ]);
    }

    function drawTheory(): void {
      const { theory: all } = result!;
      const named: [string, Theorem][] = [
        ['Theorem 1 (no norm)', all.theorem1],
        ['Corollary 1 (norm)', all.corollary1],
        ['Theorem 2 (norm), r the diameter: provable', all.theorem2Diameter],
        ['Theorem 2 (norm), r the radius: not provable', all.theorem2Radius],
      ];
      const speaking = named.filter(([, theorem]) => theorem.bound);
      theory.replaceChildren(
        html(
          'summary',
          {},
          speaking.length > 0
            ? speaking
                .map(
                  ([name, theorem]) =>
                    `${name} speaks of this run: ${theorem.violations === 0 ? 'none' : theorem.violations} of ${theorem.bound!.length - 1} layers above its bound`,
                )
                .join('; ')
            : 'No theorem of Wu et al. speaks of this run: what each would need',
        ),
        ...named.map(([name, theorem]) =>
          html(
            'div',
            {},
            html('h3', {}, name),
            html(
              'ul',
              {},
              ...theorem.assumptions.map(({ name: what, met, detail }) =>
                html('li', {}, `${met ? '✓' : '✗'} ${what}${detail ? ` (${detail})` : ''}${met ? '' : ': not so'}`),
              ),
            ),
          ),
        ),
      );
    }

    function say(): void {
      if (!result) return;
      const now = at(),
        { measures } = result,
        sets = measures.clusters![now]!;
      summary.textContent =
        `Mask ${get('mask')}, ${variants.find(([id]) => id === get('variant'))?.[1] ?? get('variant')}: at layer ${now} of ${layers()}, μ/‖X‖ is ` +
        `${scientific(measures.relative![now]!)} (${scientific(measures.relative![0]!)} at the start), φ ${scientific(measures.min_cosine![now]!)}, rank ${measures.rank![now]!}; ` +
        `${sets === 1 ? 'all tokens point one way' : `tokens point ${sets} ways`} (cosine > 0.999).`;
    }

    function tokensCsv(): string {
      const axes = result?.axes ?? 0,
        n = tokens();
      const rows: number[][] = [];
      for (let t = 0; result && t <= layers(); ++t) {
        for (let i = 0; i < n; ++i)
          rows.push([
            t,
            i,
            ...(get('show') === 'positions' ? result.positions : result.directions).subarray(
              (t * n + i) * axes,
              (t * n + i + 1) * axes,
            ),
          ]);
      }
      return csv([['layer', 'token', 'x1', 'x2', 'x3'].slice(0, 2 + axes), ...rows]);
    }
    function measuresCsv(): string {
      const names = Object.keys(result?.measures ?? {});
      const bounds = (['theorem1', 'theorem2Diameter', 'theorem2Radius', 'corollary1'] as const).filter(
        name => result?.theory[name].bound,
      );
      return csv([
        ['layer', ...names, ...bounds.map(name => `bound_${name}`)],
        ...Array.from({ length: layers() + 1 }, (_, t) => [
          t,
          ...names.map(name => result!.measures[name]![t]!),
          ...bounds.map(name => result!.theory[name].bound![t]!),
        ]),
      ]);
    }
    function attentionCsv(): string {
      const n = tokens(),
        rows: number[][] = [],
        which = Math.max(0, at() - 1);
      for (let i = 0; result && i < n; ++i) {
        for (let j = 0; j < n; ++j)
          if (result.mask.allowed[i * n + j]) rows.push([which + 1, i, j, result.attention[(which * n + i) * n + j]!]);
      }
      return csv([['layer', 'token', 'attends_to', 'weight'], ...rows]);
    }

    state.onChange(() => {
      aim();
      readControls();
      compute();
    });
    readControls();
    compute();
    const ended = onResize(drawLayer);
    return () => {
      ended();
      cancelAnimationFrame(asked);
      layer.stop();
    };
  },
};
export default view;
