// Two tokens in the plane under causal attention and scaling to norm 1 (Wu et al. 2024, Theorem 3): where they end.
import { call } from '../core';
import { button, player, select, slider } from '../kit/controls';
import { csv } from '../kit/csv';
import { html } from '../kit/elements';
import { numberOf } from '../kit/numbers';
import { figure, layout, numbersTable } from '../kit/panel';
import type { View } from '../view';
import { drawCircle, drawMap, type Path, type Portrait } from './equilibria_figures';

interface Share {
  starts: number;
  share: number;
  low: number;
  high: number;
}
interface Shares {
  starts: number;
  collapsed: Share;
  apart: Share;
  zeroRows: number;
  unsettled: number;
}
interface FateMap {
  fates: Uint8Array;
  names: string[];
}

const mapCells = 61; // odd: meets no pair of opposite tokens, whose sum is 0
const mapLayers = 1000,
  starts = 2000,
  startLayers = 1000,
  pathLayers = 1000,
  shownLayers = 60;
const layersPerSecond = 5;

const examples: [string, string][] = [
  ['85,200', '85°, 200°: they stay apart'],
  ['85,250', '85°, 250°: they stay apart'],
  ['60,300', '60°, 300°: they collapse'],
  ['265,20', '265°, 20°: apart on the other side'],
  ['90,270', '90°, 270°: opposite, a zero row'],
];

const signed = (value: number): string => value.toFixed(4).replace('-', '−');
const percent = (share: number): string => `${(100 * share).toFixed(2)} %`;
const degreesOf = (x: number, y: number): number => ((Math.atan2(y, x) * 180) / Math.PI + 360) % 360;

const view: View = {
  id: 'equilibria',
  label: 'Equilibria',
  mount(root, { core, state }) {
    const { controls, figures, summary, numbers } = layout(
      root,
      'equilibria',
      'Where two tokens end',
      'Two tokens on a circle pass through layers X⁺ = D A X W: causal attention without scores, W = (1 w; 0 1), scaling to ' +
        'norm 1. Token 1 sees only itself and goes to (0, ±1); token 2 goes there too (they collapse), or to B (they stay apart).',
    );

    let portrait: Portrait | null = null,
      path: Path | null = null,
      map: FateMap | null = null,
      shares: Shares | null = null;
    let waiting: ReturnType<typeof setTimeout> | undefined;

    const degrees = (key: string, fallback: number): number =>
      numberOf(state.get(key, String(fallback)), fallback, -36000, 36000);
    const angle1 = (): number => degrees('a1', 85),
      angle2 = (): number => degrees('a2', 200);
    const w = (): number => numberOf(state.get('w', '2'), NaN);
    const step = (): number => Math.round(numberOf(state.get('step', '20'), 20, 0, shownLayers));

    const weight = slider({
      id: 'equilibria-w',
      label: 'w, above the diagonal of W',
      min: 1.01,
      max: 20,
      step: 0.01,
      logarithmic: true,
      hint: '(w > 1)',
      onInput: value => set({ w: value }),
    });
    const first = slider({
      id: 'equilibria-a1',
      label: 'Token 1 starts at',
      unit: '°',
      min: 0,
      max: 360,
      step: 1,
      onInput: value => set({ a1: value, example: null }),
    });
    const second = slider({
      id: 'equilibria-a2',
      label: 'Token 2 starts at',
      unit: '°',
      min: 0,
      max: 360,
      step: 1,
      onInput: value => set({ a2: value, example: null }),
    });
    const example = select('equilibria-example', 'A start', [['', 'as set below'], ...examples], value => {
      const [a1, a2] = value.split(',');
      if (a2 !== undefined) set({ a1: a1!, a2, step: String(shownLayers / 3) });
    });
    const seed = slider({
      id: 'equilibria-seed',
      label: 'Seed of the random starts',
      min: 0,
      max: 99,
      step: 1,
      onInput: value => set({ seed: value }),
    });
    const layers = player({
      id: 'equilibria-step',
      label: 'Layer',
      max: shownLayers,
      value: step(),
      perSecond: layersPerSecond,
      onInput: value => {
        state.set({ step: String(value) });
        draw();
      },
      onStop: () => say(),
    });
    controls.append(weight.element, example.element, first.element, second.element, seed.element);

    const circle = figure({
      id: 'equilibria-circle',
      name: 'equilibria-circle',
      title: 'Token 2 on its circle',
      csv: circleCsv,
    });
    const plane = figure({
      id: 'equilibria-map',
      name: 'equilibria-map',
      title: 'Fate by where both start',
      csv: mapCsv,
    });
    circle.foot.append(layers.element);
    const policy = html('p', { class: 'depth-note', 'data-testid': 'equilibria-policy' });
    figures.append(circle.element, plane.element);
    numbers.before(policy);
    plane.body.tabIndex = 0;
    plane.body.setAttribute('role', 'group');
    plane.body.setAttribute(
      'aria-label',
      'Map of starts. Click to start a trajectory there; arrow keys move the start by 1 degree, with Shift by 10.',
    );
    plane.body.addEventListener('keydown', event => {
      const by = event.shiftKey ? 10 : 1; // as everywhere on the page, Shift goes further
      const turns: Record<string, [number, number]> = {
        ArrowLeft: [-by, 0],
        ArrowRight: [by, 0],
        ArrowUp: [0, by],
        ArrowDown: [0, -by],
      };
      const turn = turns[event.key];
      if (!turn) return;
      event.preventDefault();
      set({ a1: String((angle1() + turn[0] + 360) % 360), a2: String((angle2() + turn[1] + 360) % 360) });
    });

    function set(values: Record<string, string | number | null>): void {
      state.set(
        Object.fromEntries(Object.entries(values).map(([key, value]) => [key, value === null ? null : String(value)])),
      );
      readControls();
      compute();
    }

    function readControls(): void {
      weight.show(w());
      first.show(angle1());
      second.show(angle2());
      seed.show(numberOf(state.get('seed', '0'), 0, 0));
      layers.show(step());
      const here = `${angle1()},${angle2()}`;
      example.show(examples.some(([value]) => value === here) ? here : '');
    }

    // What a hand on a slider waits for at once; the map and the random starts once it rests.
    let lastWeight = NaN,
      lastSeed = '';
    function compute(): void {
      try {
        path = call<Path>(core, 'equilibriaPath', w(), angle1(), angle2(), pathLayers);
        const side = path.steps[4 * pathLayers + 1]! < 0 ? -1 : 1;
        portrait = { ...call<Portrait>(core, 'equilibriaPortrait', w(), side), side };
        weight.error(null);
      } catch (error) {
        weight.error((error as Error).message);
        return;
      }
      if (w() !== lastWeight || state.get('seed', '0') !== lastSeed) {
        if (w() !== lastWeight) map = null;
        shares = null;
        lastWeight = w();
        lastSeed = state.get('seed', '0');
        clearTimeout(waiting);
        waiting = setTimeout(() => {
          map ??= call<FateMap>(core, 'equilibriaMap', w(), mapCells, mapLayers);
          draw();
          waiting = setTimeout(() => {
            try {
              shares = call<Shares>(
                core,
                'equilibriaShares',
                w(),
                starts,
                startLayers,
                numberOf(state.get('seed', '0'), 0),
              );
              seed.error(null);
            } catch (error) {
              seed.error((error as Error).message);
            }
            draw();
            say();
          }, 0);
        }, 150);
      }
      draw();
      say();
    }

    function draw(): void {
      if (!portrait || !path) return;
      circle.show(drawCircle(portrait, path, step(), w(), degree => set({ a2: degree.toFixed(0) })));
      plane.show(
        drawMap(map && { ...map, cells: mapCells }, path, step(), (a1, a2) =>
          set({ a1: a1.toFixed(0), a2: a2.toFixed(0) }),
        ),
      );
      const { arc } = portrait;
      const at = step(),
        place = (token: number): string => {
          const x = path!.steps[4 * at + 2 * token]!,
            y = path!.steps[4 * at + 2 * token + 1]!;
          return x === 0 && y === 0 ? 'zero row' : `(${signed(x)}, ${signed(y)}), ${degreesOf(x, y).toFixed(1)}°`;
        };
      numbersTable(numbers, [
        ['Fate of this start', path.fate, 'equilibria-fate', path.fate],
        [`Token 1 at layer ${at}`, place(0), 'equilibria-token1', path.steps[4 * at]!],
        [`Token 2 at layer ${at}`, place(1), 'equilibria-token2', path.steps[4 * at + 2]!],
        ['Arc that stays apart, ½ − arcsin(1/w)/2π', percent(arc.formula), 'equilibria-formula', arc.formula],
        [
          `… of ${arc.angles} angles followed`,
          `${percent(arc.share)}, ${arc.mismatches} against the formula`,
          'equilibria-arc',
          arc.share,
        ],
        [
          `Both move, ${starts} random starts: apart`,
          shares
            ? `${percent(shares.apart.share)} (95 %: ${percent(shares.apart.low)} – ${percent(shares.apart.high)})`
            : 'computing …',
          'equilibria-apart',
          shares?.apart.share ?? '',
        ],
        [
          '… collapsed',
          shares ? percent(shares.collapsed.share) : 'computing …',
          'equilibria-collapsed',
          shares?.collapsed.share ?? '',
        ],
        [
          '… met a zero row, or not settled',
          shares ? `${shares.zeroRows}, ${shares.unsettled}` : 'computing …',
          'equilibria-zero',
          shares?.zeroRows ?? '',
        ],
        ...portrait.points.map((point): [string, string, string, number] => [
          `${point.name}: ${{ A: 'repels', B: 'attracts, apart', C: 'attracts, collapsed', S: 'singular' }[point.name] ?? point.kind}`,
          `(${signed(point.x)}, ${signed(point.y)})` +
            (Number.isNaN(point.multiplier)
              ? ', no multiplier'
              : `, distance × ${point.multiplier.toFixed(4)} per layer`),
          `equilibria-point-${point.name}`,
          point.multiplier,
        ]),
      ]);
      policy.textContent =
        'Zero rows: where the tokens a row attends to cancel, D is not defined; the row stays 0 in that layer and is ' +
        `counted, and the next layer attends to the others again. This start met ${path.zeroRows}.`;
    }

    function say(): void {
      if (!portrait || !path) return;
      const ends =
        { collapsed: 'collapse', apart: 'stay apart' }[path.fate] ??
        (path.zeroRows > 0 ? 'meet a zero row on the way' : 'have not settled');
      summary.textContent =
        `w = ${w()}: from ${angle1()}° and ${angle2()}° the tokens ${ends}. Beside a converged token 1, ` +
        `${percent(portrait.arc.formula)} of the circle stays apart` +
        (shares ? `; with both moving, ${percent(shares.apart.share)} of random starts.` : '.');
    }

    function circleCsv(): string {
      const rows: (string | number)[][] = (portrait?.points ?? []).map(point => [
        'point',
        point.name,
        '',
        point.x,
        point.y,
      ]);
      for (let layer = 0; path && layer <= shownLayers; ++layer) {
        rows.push(
          ['path', 'token 1', layer, path.steps[4 * layer]!, path.steps[4 * layer + 1]!],
          ['path', 'token 2', layer, path.steps[4 * layer + 2]!, path.steps[4 * layer + 3]!],
        );
      }
      return csv([['kind', 'name', 'layer', 'x', 'y'], ...rows]);
    }
    function mapCsv(): string {
      const middle = (cell: number): number => (360 * (cell + 0.5)) / mapCells;
      return csv([
        ['degrees_token1', 'degrees_token2', 'fate'],
        ...[...(map?.fates ?? [])].map((fate, i) => [
          middle(i % mapCells),
          middle(Math.floor(i / mapCells)),
          map!.names[fate]!,
        ]),
      ]);
    }

    controls.append(
      button('equilibria-restart', 'Start anew', () => {
        layers.stop();
        set({ step: '0' });
        layers.play();
      }),
    );
    state.onChange(() => {
      readControls();
      compute();
    });
    readControls();
    compute();
    return () => {
      clearTimeout(waiting);
      layers.stop();
    };
  },
};
export default view;
