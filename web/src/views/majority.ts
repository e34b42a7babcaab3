// A small encoder learns, while one looks on, to name the most frequent token (Brody, Alon, Yahav 2023, §4.1): keys and
// queries in space, loss and angle by step, for two norms side by side.
import { button, select, slider } from '../kit/controls';
import { csv } from '../kit/csv';
import { degrees, numberOf, radians } from '../kit/numbers';
import { colour, dashes, palette } from '../kit/palette';
import { onRotate } from '../kit/scene3d';
import { html } from '../kit/elements';
import { figure, layout, numbersGrid, onResize, type Cell } from '../kit/panel';
import type { View } from '../view';
import { createChart, type Series } from './collapse_chart';
import { drawScene, sceneFigure, type Place } from './collapse_scene';

interface RunState {
  norm: string;
  rows: Float64Array; // step, train loss, test loss, accuracy, sequence accuracy, angle, sd of the angle, distance from uniform; since the last call
  step: number;
  finished: boolean;
  diverged: boolean;
  keys: Float64Array; // classes × d
  queries: Float64Array;
  keyAngles: Float64Array;
  queryAngles: Float64Array;
  outOfPlane: number;
}
interface TrainingState {
  step: number;
  done: boolean;
  runs: RunState[];
  error?: string;
}
interface Training {
  start(options: object): TrainingState;
  advance(milliseconds: number): TrainingState;
  delete(): void;
}

const norms: [string, string][] = [
  ['layernorm', 'layernorm: projection and scaling'],
  ['rmsnorm', 'rmsnorm: scaling to √d only'],
  ['published', 'published: scaling to 1/√d'],
  ['center', 'center: projection only'],
  ['none', 'none'],
  ['unit', 'unit: scaling to 1'],
  ['dyt', 'dyt: tanh'],
  ['project:1', 'project:1: a learned normal'],
];
const columns = [
  'step',
  'train_loss',
  'test_loss',
  'accuracy',
  'sequence_accuracy',
  'angle_mean',
  'angle_sd',
  'attention_distance',
];
const dimension = 3,
  evaluateEvery = 5,
  decaySteps = 100_000,
  chunk = 14,
  spokenEvery = 2000; // milliseconds: of a frame, between two announcements
const runColours = [palette.blue, palette.orange],
  runDashes = [dashes[0], dashes[1]];

const defaults: Record<string, string> = {
  norm: 'layernorm',
  other: 'rmsnorm',
  seed: '1',
  classes: '5',
  length: '12',
  samples: '500',
  lead: '2',
  rate: '0.01',
  steps: '1500',
  yaw: '-18',
  pitch: '12',
};

const view: View = {
  id: 'majority',
  label: 'Majority',
  mount(root, { core, state }) {
    const { controls, figures, summary, numbers } = layout(
      root,
      'majority',
      'Training on the majority task',
      'One layer of attention in 3 dimensions learns to name the most frequent token of a sequence. To weigh all tokens alike, a query must score ' +
        'all keys alike: with the projection of LayerNorm, keys lie in the plane orthogonal to 1, and queries tend to 1. The training runs here, in the page. ' +
        'In 3 dimensions, where keys can be seen, the projection leaves 2 to them; who ends ahead is said when a training is done.',
    );
    summary.before(
      html(
        'p',
        { class: 'depth-words' },
        'The paper compares losses in 8 dimensions: ',
        html('a', { href: '#explain?section=majority' }, 'watch that training beside the published values'),
        '.',
      ),
    );
    const get = (key: string): string => state.get(key, defaults[key]!);
    const camera = {
      azimuth: radians(numberOf(get('yaw'), -18)),
      elevation: radians(numberOf(get('pitch'), 12, -90, 90)),
    };
    const training = new (core as unknown as { MajorityTraining: new () => Training }).MajorityTraining();
    let latest: TrainingState | null = null,
      rows: number[][][] = [],
      frame = 0,
      running = false;
    // What is seen is current at every frame; what is read aloud is the same sentence, once in a while.
    summary.removeAttribute('aria-live');
    summary.setAttribute('aria-hidden', 'true');
    const spoken = html('p', { class: 'spoken', 'aria-live': 'polite', 'data-testid': 'majority-spoken' });
    summary.after(spoken);
    let spokenAt = -Infinity;

    const set =
      (key: string) =>
      (value: string | number): void => {
        state.set({ [key]: String(value) });
        reset();
      };
    const fields = {
      norm: select('majority-norm', 'Norm before attention', norms, set('norm')),
      other: select('majority-other', 'Beside it', [['-', 'nothing'], ...norms], set('other')),
      seed: slider({ id: 'majority-seed', label: 'Seed', min: 0, max: 99, step: 1, onInput: set('seed') }),
      classes: slider({
        id: 'majority-classes',
        label: 'Classes of tokens',
        min: 3,
        max: 8,
        step: 1,
        onInput: set('classes'),
      }),
      length: slider({
        id: 'majority-length',
        label: 'Tokens of a sequence',
        min: 6,
        max: 30,
        step: 1,
        onInput: set('length'),
      }),
      lead: slider({
        id: 'majority-lead',
        label: 'The majority leads by at least',
        min: 1,
        max: 10,
        step: 1,
        onInput: set('lead'),
      }),
      samples: slider({
        id: 'majority-samples',
        label: 'Sequences',
        hint: '80 % to train on',
        min: 100,
        max: 2000,
        step: 100,
        onInput: set('samples'),
      }),
      rate: select(
        'majority-rate',
        'Learning rate',
        [
          ['0.001', '0.001'],
          ['0.003', '0.003'],
          ['0.01', '0.01'],
          ['0.03', '0.03'],
        ],
        set('rate'),
      ),
      steps: slider({
        id: 'majority-steps',
        label: 'Steps',
        min: 500,
        max: 5000,
        step: 500,
        onInput: set('steps'),
      }),
    };
    const toggle = button('majority-toggle', 'Train', () => (running ? pause() : go()));
    const buttons = html(
      'div',
      { class: 'depth-buttons' },
      toggle,
      button('majority-step', `+${evaluateEvery} steps`, () => {
        pause();
        advance(0);
        say();
      }),
      button('majority-reset', 'Reset', () => reset()),
    );
    const progress = html('output', { 'data-testid': 'majority-progress' });
    controls.append(buttons, progress, ...Object.values(fields).map(field => field.element));

    const scenes = [0, 1].map(i =>
      figure({ id: `majority-scene-${i}`, name: `majority-geometry-${i + 1}`, title: '', csv: () => geometryCsv(i) }),
    );
    const curves = figure({ id: 'majority-curves', name: 'majority-loss', title: 'Loss and accuracy', csv: rowsCsv });
    const angles = figure({
      id: 'majority-angles',
      name: 'majority-angles',
      title: 'Angle and attention',
      csv: rowsCsv,
    });
    const lossChart = createChart(),
      angleChart = createChart();
    curves.show(lossChart.element);
    angles.show(angleChart.element);
    figures.append(...scenes.map(scene => scene.element), curves.element, angles.element);
    const spaces = scenes.map(scene => {
      const space = sceneFigure('Keys and queries');
      scene.show(space);
      onRotate(space, camera, () => {
        state.set({ yaw: degrees(camera.azimuth), pitch: degrees(camera.elevation) });
        drawScenes();
      });
      return space;
    });

    function readControls(): void {
      for (const key of ['seed', 'classes', 'length', 'lead', 'samples', 'steps'] as const)
        fields[key].show(Number(get(key)));
      for (const key of ['norm', 'other', 'rate'] as const) fields[key].show(get(key));
    }

    function blame(sentence: string): keyof typeof fields {
      if (/seed/i.test(sentence)) return 'seed';
      if (/margin|leads by/.test(sentence)) return 'lead';
      if (/learning rate/.test(sentence)) return 'rate';
      if (/classes/.test(sentence)) return 'classes';
      if (/sequences/.test(sentence)) return 'samples';
      if (/number of steps/.test(sentence)) return 'steps';
      if (/length|tokens in a sequence/.test(sentence)) return 'length';
      return get('other') !== '-' && sentence.includes(`'${get('other')}'`) ? 'other' : 'norm';
    }

    // True if the answer is one.
    function take(answer: TrainingState): boolean {
      for (const field of Object.values(fields)) field.error(null);
      if (answer.error !== undefined) {
        fields[blame(answer.error)].error(answer.error);
        latest = null;
        pause();
        return false;
      }
      latest = answer;
      answer.runs.forEach((run, r) => {
        for (let i = 0; i < run.rows.length; i += columns.length)
          (rows[r] ??= []).push([...run.rows.subarray(i, i + columns.length)]);
      });
      return true;
    }

    function reset(): void {
      pause();
      readControls();
      rows = [];
      const same = get('other') === '-' || get('other') === get('norm');
      const taken = take(
        training.start({
          norms: same ? [get('norm')] : [get('norm'), get('other')],
          classes: Number(get('classes')),
          length: Number(get('length')),
          samples: Number(get('samples')),
          margin: Number(get('lead')),
          dimension,
          learningRate: Number(get('rate')),
          decaySteps,
          steps: Number(get('steps')),
          evaluateEvery,
          seed: Number(get('seed')),
        }),
      );
      if (taken) draw();
      say();
    }

    function advance(milliseconds: number): void {
      if (!latest || latest.done) return;
      if (take(training.advance(milliseconds))) draw();
    }
    function go(): void {
      if (!latest) return;
      if (latest.done) reset();
      running = true;
      toggle.textContent = 'Pause';
      const turn = (): void => {
        advance(chunk);
        if (!latest || latest.done) {
          pause();
          say();
        } else if (running) {
          frame = requestAnimationFrame(turn);
        }
      };
      frame = requestAnimationFrame(turn);
    }
    function pause(): void {
      cancelAnimationFrame(frame);
      if (running) say();
      running = false;
      toggle.textContent = latest?.done ? 'Train again' : 'Train';
    }

    function draw(): void {
      drawScenes();
      drawCurves();
      writeNumbers();
      say(running && !latest?.done);
      progress.textContent = latest ? `Step ${latest.step} of ${get('steps')}` : '';
    }

    const longest = (values: Float64Array): number => {
      let most = 0;
      for (let i = 0; i < values.length; i += dimension)
        most = Math.max(most, Math.hypot(...values.subarray(i, i + dimension)));
      return most;
    };
    function drawScenes(): void {
      scenes.forEach((scene, r) => {
        const run = latest?.runs[r];
        scene.element.hidden = !run;
        if (!run) return;
        const keys = longest(run.keys) || 1,
          queries = longest(run.queries) || 1,
          classes = run.keys.length / dimension;
        const place = (values: Float64Array, i: number, over: number): Place => [
          values[dimension * i]! / over,
          values[dimension * i + 1]! / over,
          values[dimension * i + 2]! / over,
        ];
        scene.title(`${run.norm}: keys and queries`);
        drawScene(
          spaces[r]!,
          {
            title: `${run.norm}: keys and queries of ${classes} classes at step ${run.step}`,
            size: 360,
            extent: 1.15,
            dots: Array.from({ length: classes }, (_, i) => ({
              at: place(run.keys, i, keys),
              colour: colour(i),
              label: `key of class ${i + 1}, ${run.keyAngles[i]!.toFixed(1)}° from 1`,
              radius: 6,
            })),
            arrows: Array.from({ length: classes }, (_, i) => ({
              to: place(run.queries, i, queries),
              colour: colour(i),
              label: `query of class ${i + 1}, ${run.queryAngles[i]!.toFixed(1)}° from 1`,
            })),
            plane: { normal: [1, 1, 1], radius: 1, colour: palette.grey },
            axis: { along: [1, 1, 1], label: '1' },
            axes: ['x₁', 'x₂', 'x₃'],
            captions: [
              'Dots: keys. Arrows: queries. Disc: the plane ⊥ 1.',
              `Drawn to the longest key (${keys.toFixed(2)}) and query (${queries.toFixed(2)}).`,
            ],
          },
          camera,
        );
      });
    }

    function drawCurves(): void {
      const series = (column: number): Series[] =>
        rows.map((run, r) => ({
          label: latest?.runs[r]?.norm ?? '',
          x: run.map(row => row[0]!),
          y: run.map(row => row[column]!),
          colour: runColours[r]!,
          dash: runDashes[r],
        }));
      lossChart.draw({
        title: 'Loss and accuracy by step',
        xLabel: 'step',
        xMax: Number(get('steps')),
        width: curves.width(),
        panels: [
          { title: 'Training loss', scale: 'log', low: 1e-5, height: 130, series: series(1) },
          { title: 'Test accuracy', scale: 'linear', low: 0, high: 1, height: 90, series: series(3) },
        ],
      });
      angleChart.draw({
        title: 'Angle of the queries to 1 and distance of attention from uniform, by step',
        xLabel: 'step',
        xMax: Number(get('steps')),
        width: angles.width(),
        panels: [
          {
            title: 'Mean angle of queries to 1, degrees',
            scale: 'linear',
            low: 0,
            high: 90,
            ticks: [0, 30, 60, 90],
            height: 130,
            series: series(5),
          },
          { title: 'Distance of attention from uniform', scale: 'linear', low: 0, height: 90, series: series(7) },
        ],
      });
    }

    function writeNumbers(): void {
      const runs = latest?.runs ?? [];
      const row = (
        label: string,
        id: string,
        column: number,
        words: (value: number, last: number[]) => string,
      ): [string, ...Cell[]] => [
        label,
        ...runs.map((_, r) => {
          const last = rows[r]!.at(-1)!,
            value = last[column]!;
          return { words: Number.isNaN(value) ? 'not yet' : words(value, last), testid: `majority-${id}-${r}`, value };
        }),
      ];
      numbersGrid(
        numbers,
        runs.map(run => run.norm + (run.diverged ? ': diverged, the loss is not finite' : '')),
        [
          row('Training loss', 'loss', 1, value => value.toFixed(4)),
          row('Test loss', 'test-loss', 2, value => value.toFixed(4)),
          row('Test accuracy', 'accuracy', 3, value => `${(100 * value).toFixed(1)} %`),
          row('Angle of queries to 1', 'angle', 5, (value, last) => `${value.toFixed(1)}° ± ${last[6]!.toFixed(1)}°`),
          row('Distance of attention from uniform', 'uniform', 7, value => value.toFixed(4)),
          [
            'Keys outside their best plane',
            ...runs.map((run, r) => ({
              words: `${(100 * run.outOfPlane).toFixed(2)} % of squared length`,
              testid: `majority-plane-${r}`,
              value: run.outOfPlane,
            })),
          ],
        ],
      );
    }

    function sentence(): string {
      if (!latest) return 'These settings cannot be trained.';
      return (
        `Step ${latest.step} of ${get('steps')}${latest.done ? ', done' : ''}. ` +
        latest.runs
          .map((run, r) => {
            const last = rows[r]!.at(-1)!;
            return `${run.norm}: ${Number.isNaN(last[1]!) ? '' : `loss ${last[1]!.toFixed(3)}, `}accuracy ${(100 * last[3]!).toFixed(0)} %, queries ${last[5]!.toFixed(0)}° from 1`;
          })
          .join('; ') +
        '.' +
        ahead()
      );
    }

    // Who has the lower loss in the end, as far as the digits shown tell.
    function ahead(): string {
      if (!latest?.done || latest.runs.length !== 2) return '';
      const [one, other] = latest.runs.map((run, r) => ({ norm: run.norm, loss: rows[r]!.at(-1)![1]! }));
      if (!Number.isFinite(one!.loss) || !Number.isFinite(other!.loss)) return '';
      if (one!.loss.toFixed(3) === other!.loss.toFixed(3)) return ' They end level.';
      return ` ${(one!.loss < other!.loss ? one! : other!).norm} ends ahead, with the lower training loss.`;
    }

    // inPassing: a sentence among many, read aloud only if the last one is long enough ago.
    function say(inPassing = false): void {
      summary.textContent = sentence();
      const now = performance.now();
      if ((inPassing && now - spokenAt < spokenEvery) || spoken.textContent === summary.textContent) return;
      spoken.textContent = summary.textContent;
      spokenAt = now;
    }

    function rowsCsv(): string {
      return csv([
        ['norm', ...columns],
        ...rows.flatMap((run, r) => run.map(row => [latest?.runs[r]?.norm ?? '', ...row])),
      ]);
    }
    function geometryCsv(r: number): string {
      const run = latest?.runs[r],
        line: (string | number)[][] = [];
      for (const [kind, values, angles] of run
        ? ([
            ['key', run.keys, run.keyAngles],
            ['query', run.queries, run.queryAngles],
          ] as const)
        : []) {
        for (let i = 0; i < values.length / dimension; ++i)
          line.push([
            run!.norm,
            run!.step,
            kind,
            i,
            ...values.subarray(dimension * i, dimension * (i + 1)),
            angles[i]!,
          ]);
      }
      return csv([['norm', 'step', 'kind', 'class', 'x1', 'x2', 'x3', 'degrees_to_1'], ...line]);
    }

    state.onChange(reset);
    reset();
    const ended = onResize(() => latest && draw());
    return () => {
      ended();
      pause();
      training.delete();
    };
  },
};
export default view;
