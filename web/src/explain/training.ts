// Section 10: the majority task in 8 dimensions, trained while the reader looks on, with what the paper published as marks.
import { call } from '../core';
import { button, slider } from '../kit/controls';
import { html } from '../kit/elements';
import { dashes, palette } from '../kit/palette';
import { createChart, type Series } from '../views/collapse_chart';
import { formula, bold, identifier, m, operator, power, row, words } from './math';
import { lab, note, paragraph, type Section } from './section';

interface Run {
  norm: string;
  rows: Float64Array; // eight numbers each: step, training loss, test loss, accuracy, …, angle, …
}
interface State {
  step: number;
  done: boolean;
  runs: Run[];
  error?: string;
}
interface Training {
  start(options: object): State;
  advance(milliseconds: number): State;
  delete(): void;
}
interface Published {
  norm: string;
  x: number;
  y: number;
}

const columns = 8,
  steps = 3000,
  evaluateEvery = 25,
  chunk = 12; // milliseconds of a frame
// The paper's norms first; then the one that its comparison should have had.
const norms = ['layernorm', 'published', 'rmsnorm'],
  names: Record<string, string> = {
    layernorm: 'LayerNorm',
    published: 'without projection, as published (norm 1/√d)',
    rmsnorm: 'without projection, equal scale (norm √d)',
  },
  colours = [palette.blue, palette.vermillion, palette.green];

export const majority: Section = {
  id: 'majority',
  title: 'What the projection is for: counting votes, live',
  mount({ words: text, figure }, { core }) {
    const training = new (core as unknown as { MajorityTraining: new () => Training }).MajorityTraining();
    const published = call<{ losses: Published[]; angles: Published[] }>(core, 'majorityPublished');
    let rows: number[][][] = [],
      latest: State | undefined,
      running = false,
      frame = 0,
      seed = 11;
    const loss = createChart(),
      angle = createChart(),
      verdict = html('p', { class: 'headline', 'data-testid': 'majority-verdict' }),
      spoken = html('p', { class: 'spoken', 'aria-live': 'polite' }),
      problem = html('p', { class: 'failure', role: 'alert' });
    problem.hidden = true;
    const toggle = button('majority-train', 'Train', () => (running ? pause() : go()));
    const seeds = slider({
      id: 'majority-explain-seed',
      label: 'Seed',
      min: 0,
      max: 99,
      step: 1,
      format: String,
      onInput: value => {
        seed = value;
        start();
      },
    });
    text.append(
      paragraph(
        'Name the most frequent token of a sequence: the best attention is the plainest, equal weight for all. A query along 1 scores all projected keys 0 and gets it for free.',
      ),
      formula(
        'if one transposed times P k is zero for every key, then a query c times one gives every key the same weight, one over n',
        row(
          power(bold('1'), operator('⊤')),
          identifier('P'),
          bold('k'),
          operator('='),
          m('mn', {}, '0'),
          m('mspace', { width: '0.6em' }),
          operator('⇒'),
          m('mspace', { width: '0.6em' }),
          bold('q'),
          operator('='),
          identifier('c'),
          bold('1'),
          words('\u00a0\u00a0weighs all alike'),
        ),
      ),
      paragraph(
        'The paper trains this in d = 8 and finds two things: queries turn to 1 with LayerNorm and not without, and training without projection needs 3 times as many steps. The second rests on code that made the norm without projection d times too small; the third curve has it at equal scale. A run here is of one seed, which settles neither: normscope paper --only fig2 compares several, seed by seed, with intervals.',
      ),
      html('div', { class: 'buttons' }, toggle),
      seeds.element,
      note(
        '20 classes, 50 tokens, d = 8 and Adam at 0.001 as in the paper; 1,000 sequences in place of 100,000, so that a page can train it. Diamonds are values read off the paper’s Figure 2.',
      ),
      lab('#majority', 'Keys and queries in space, with other settings, in the Lab'),
    );
    figure.append(html('div', { class: 'under' }, loss.element, angle.element, verdict, spoken, problem));

    function take(state: State): boolean {
      problem.hidden = state.error === undefined;
      if (state.error !== undefined) {
        problem.textContent = state.error;
        running = false;
        return false;
      }
      latest = state;
      state.runs.forEach((run, r) => {
        for (let i = 0; i < run.rows.length; i += columns)
          (rows[r] ??= []).push([...run.rows.subarray(i, i + columns)]);
      });
      return true;
    }
    function start(): void {
      pause();
      rows = [];
      const began = take(
        training.start({
          norms,
          classes: 20,
          length: 50,
          samples: 1000,
          margin: 6,
          dimension: 8,
          learningRate: 1e-3,
          decaySteps: 170_000,
          steps,
          evaluateEvery,
          seed,
        }),
      );
      if (began) draw();
    }
    function go(): void {
      if (!latest || latest.done) start();
      running = true;
      toggle.textContent = 'Pause';
      frame = requestAnimationFrame(function turn() {
        if (!running || !take(training.advance(chunk))) return;
        draw();
        if (latest!.done) pause();
        else frame = requestAnimationFrame(turn);
      });
    }
    function pause(): void {
      cancelAnimationFrame(frame);
      if (running) spoken.textContent = verdict.textContent;
      running = false;
      toggle.textContent = latest?.done ? 'Train again' : 'Train';
    }

    function series(column: number): Series[] {
      return norms.map((norm, r) => ({
        label: names[norm]!,
        x: (rows[r] ?? []).map(each => each[0]!),
        y: (rows[r] ?? []).map(each => each[column]!),
        colour: colours[r]!,
        dash: dashes[r],
      }));
    }
    const marks = (values: Published[]) =>
      values
        .filter(({ x }) => x <= steps)
        .map(({ norm, x, y }) => ({
          x,
          y,
          colour: colours[norms.indexOf(norm)]!,
          label: `published: ${y} at step ${x}`,
        }));
    function draw(): void {
      const width = Math.max(300, Math.min(760, figure.clientWidth || 600));
      const common = { xLabel: 'step', xMax: steps, width };
      loss.draw({
        ...common,
        title: 'Training loss by step',
        panels: [
          {
            title: 'Training loss',
            scale: 'linear',
            low: 0,
            high: 6, // where an untrained model may begin: pressing Train leaves the axis as it is
            ticks: [0, 1, 2, 3, 4, 5, 6],
            height: 150,
            series: series(1),
            marks: marks(published.losses),
          },
        ],
      });
      angle.draw({
        ...common,
        title: 'Angle of the queries to 1 by step',
        panels: [
          {
            title: 'Mean angle of the queries to 1, degrees',
            scale: 'linear',
            low: 0,
            high: 90,
            ticks: [0, 30, 60, 90],
            height: 120,
            series: series(5),
            marks: marks(published.angles),
          },
        ],
      });
      verdict.textContent = latest
        ? `Step ${latest.step} of ${steps}. ` +
          norms
            .map((norm, r) => {
              const last = rows[r]?.at(-1);
              return (
                last &&
                `${names[norm]}: ${Number.isNaN(last[1]!) ? '' : `loss ${last[1]!.toFixed(2)}, `}queries ${last[5]!.toFixed(0)}° from 1`
              );
            })
            .join('; ') +
          '.'
        : '';
    }
    seeds.show(seed);
    start();
    return {
      redraw: draw,
      leave: pause,
      remove() {
        pause();
        training.delete();
      },
    };
  },
};
