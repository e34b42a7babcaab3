// Which keys can attention select? Keys that can be moved, the verdict of each, and its certificate.
import './select.css';
import { parseAddress } from '../address';
import { button, segments, select, slider, toggle } from '../kit/controls';
import { csv } from '../kit/csv';
import { download, downloadSvg } from '../kit/download';
import { colour } from '../kit/palette';
import { html, svg } from '../kit/elements';
import type { View } from '../view';
import { createFigure, legendOf } from './select_figure';
import { decideFile, drawShadow, readKeys, type FileAnswer, type FileKeys } from './select_file';
import {
  compute,
  countsOf,
  fileLabel,
  fromFile,
  labelOf,
  largest,
  mostKeys,
  nextLabel,
  normName,
  numberOf,
  readSetting,
  writeSetting,
  type Answer,
  type KeySet,
  type Setting,
} from './select_model';
import { linked, presetOf, presets, settingOf } from './select_presets';
import { csvRows, shown, tableOf, type Listed } from './select_table';
import { sentenceOf } from './select_words';

const usualLength = 3; // the end of the slider of magnitudes

const view: View = {
  id: 'select',
  label: 'Select',
  mount(root, { core, state }) {
    const first = settingOf(presets[0]!);
    let setting: Setting = first;
    let answer: Answer;
    let file: FileKeys | undefined, fileAnswer: FileAnswer | undefined;
    let gone = false;
    let longest = 0; // that the slider of magnitudes has had to reach: it grows with a key dragged far and never shrinks under the hand

    const listed = (): Listed =>
      file && fileAnswer
        ? {
            labels: fileAnswer.set.keys.map((_, i) => fileLabel(i)),
            numbers: fileAnswer.set.keys.map((_, i) => String(i)),
            norm: normName(setting),
            normed: fileAnswer.normed,
            set: fileAnswer.set,
          }
        : {
            labels: setting.keys.map((_, i) => labelOf(setting, i)),
            numbers: setting.keys.map((_, i) => numberOf(setting, i)),
            norm: normName(setting),
            normed: answer.normed,
            set: answer.set,
            weights: answer.weights,
          };

    // Controls
    const change = (edit: () => void, replace = false) => {
      edit();
      problem.hidden = true;
      badLink.hidden = true;
      update();
      if (!file) writeSetting(state, setting, replace);
    };
    const preset = select(
      'preset',
      'Example',
      [['', 'your own keys'], ...presets.map(({ id, name }): [string, string] => [id, name])],
      id => {
        const found = presets.find(candidate => candidate.id === id);
        if (!found) return;
        closeFile();
        longest = 0;
        figure.refit();
        change(() => (setting = settingOf(found)));
      },
    );
    const badLink = html('p', { class: 'failure bad-link', role: 'alert', 'data-testid': 'bad-link' });
    badLink.hidden = true;
    const fact = html('p', { class: 'fact', 'data-testid': 'fact' });
    const dimension = segments(
      'dimension',
      'Dimension',
      [
        ['2', 'plane, d = 2'],
        ['3', 'space, d = 3'],
      ],
      value =>
        change(() => {
          const d = Number(value);
          const fit = (vector: number[]) => (d === 2 ? vector.slice(0, 2) : [...vector, 0].slice(0, 3));
          setting = { ...setting, d, keys: setting.keys.map(fit), query: fit(setting.query) };
        }),
    );
    const projection = toggle('projection', 'Projection: subtract the mean', on =>
      change(() => (setting.projection = on)),
    );
    const scaling = toggle('scaling', 'Scaling: to norm √d', on => change(() => (setting.scaling = on)));
    const norm = html('p', { class: 'note', 'data-testid': 'norm' });
    const magnitude = slider({
      id: 'magnitude',
      label: 'Magnitude',
      min: 0.1,
      max: usualLength,
      step: 0.05,
      format: value => value.toFixed(2),
      onInput: value =>
        change(() => {
          const key = setting.keys[setting.chosen]!,
            length = Math.hypot(...key);
          const direction = length > 0 ? key.map(x => x / length) : key.map((_, c) => (c === 0 ? 1 : 0));
          setting.keys[setting.chosen] = direction.map(x => +(x * value).toFixed(4));
        }, true),
    });
    const temperature = slider({
      id: 'temperature',
      label: 'Softmax temperature',
      min: 0.05,
      max: 5,
      step: 0.05,
      format: value => value.toFixed(2),
      onInput: value => change(() => (setting.temperature = value), true),
    });
    const add = button('add-key', 'Add a key', () =>
      change(() => {
        const angle = setting.keys.length * 2.4; // golden angle: never on top of another
        setting.keys.push(
          [0.9 * Math.cos(angle), 0.9 * Math.sin(angle), 0.3].slice(0, setting.d).map(x => +x.toFixed(3)),
        );
        setting.labels.push(nextLabel(setting));
        setting.chosen = setting.keys.length - 1;
      }),
    );
    const remove = button('remove-key', 'Remove', () =>
      change(() => {
        setting.keys.splice(setting.chosen, 1);
        setting.labels.splice(setting.chosen, 1);
        setting.chosen = Math.min(setting.chosen, setting.keys.length - 1);
      }),
    );
    const back = button('close-file', 'Back to keys you can move', () => {
      closeFile();
      update();
    });
    const picker = html('input', { type: 'file', accept: '.npy,.safetensors', 'data-testid': 'file' });
    picker.addEventListener('change', () => {
      const chosen = picker.files?.[0];
      if (chosen) void load(chosen);
      picker.value = '';
    });
    const copy = button('copy-link', 'Copy link', () => {
      navigator.clipboard.writeText(location.href).then(
        () => notify('The link is on the clipboard.'),
        () => notify('The browser does not let the page use the clipboard; copy the address instead.'),
      );
    });
    const savePicture = button('save-svg', 'SVG', () =>
      downloadSvg('normscope-select.svg', file ? shadow : figure.element),
    );
    const saveTable = button('save-csv', 'CSV', () =>
      download('normscope-select.csv', 'text/csv', csv(csvRows(listed()))),
    );

    const summary = html('p', { class: 'summary', 'aria-live': 'polite', 'data-testid': 'summary' });
    const notice = html('p', { class: 'notice', role: 'status', 'data-testid': 'notice' });
    const problem = html('p', { class: 'failure', role: 'alert', 'data-testid': 'problem' });
    problem.hidden = true;
    const bars = html('div', { class: 'bars', role: 'list', 'aria-label': 'Attention weights' });
    const weightsPanel = html(
      'section',
      { class: 'weights' },
      html('h3', {}, 'Attention weights'),
      bars,
      html('p', { class: 'note' }, 'softmax of q · k over the temperature'),
    );
    const table = html('div');
    const shadow = svg('svg', {
      class: 'select-figure',
      role: 'img',
      'aria-label': 'Keys of the file along their two principal directions',
      'data-testid': 'shadow',
    });
    const caption = html('p', { class: 'note', 'data-testid': 'caption' });
    const counts = html('dl', { class: 'counts' });

    const figure = createFigure(core, {
      move(which, point) {
        change(() => {
          if (which === 'query') setting.query = point;
          else setting.keys[which] = point.map(x => Math.max(-largest, Math.min(largest, x)));
        }, true);
      },
      choose(key) {
        if (key === setting.chosen) return;
        longest = 0;
        change(() => (setting.chosen = key), true);
      },
      release: update,
    });
    const drawing = html('div', { class: 'drawing' }, figure.element, caption);

    const magnitudeBox = html(
      'div',
      { class: 'controls magnitude' },
      magnitude.element,
      html('div', { class: 'buttons' }, add, remove),
    );
    const openLabel = html('label', { class: 'button-like' }, picker, 'Open .npy …');
    const controls = html(
      'form',
      { class: 'controls', 'aria-label': 'Settings' },
      preset.element,
      badLink,
      fact,
      dimension.element,
      html(
        'fieldset',
        { class: 'control norm' },
        html('legend', {}, 'Norm applied to the keys'),
        projection.element,
        scaling.element,
        norm,
      ),
      magnitudeBox,
      temperature.element,
      html('div', { class: 'buttons' }, openLabel, back),
      html('div', { class: 'buttons' }, copy, savePicture, saveTable),
      notice,
    );
    controls.addEventListener('submit', event => event.preventDefault());
    root.replaceChildren(
      html(
        'div',
        { class: 'select-view', 'data-testid': 'select-view' },
        html('h2', {}, 'Which keys can attention select?'),
        html(
          'p',
          { class: 'intro' },
          'Drag a key or the query, or move them with the arrow keys. The ring (in space, the small sphere) shows which key has the highest score for a query in each direction: a key that owns no part of it can never be selected.',
        ),
        problem,
        html(
          'div',
          { class: 'select-columns' },
          controls,
          drawing,
          html('div', { class: 'side' }, summary, counts, weightsPanel),
        ),
        table,
      ),
    );

    function notify(text: string): void {
      notice.textContent = text;
    }

    function closeFile(): void {
      file = fileAnswer = undefined;
      problem.hidden = true;
      notify('');
    }

    async function load(chosen: File): Promise<void> {
      problem.hidden = true;
      notify(`Reading ${chosen.name} …`);
      try {
        const read = await readKeys(core, chosen);
        if (gone) return;
        if (
          (read.d === 2 || read.d === 3) &&
          read.n <= mostKeys &&
          read.values.every(value => Math.abs(value) <= largest)
        ) {
          closeFile();
          change(() => {
            const keys = Array.from({ length: read.n }, (_, i) => [
              ...read.values.subarray(i * read.d, (i + 1) * read.d),
            ]);
            setting = {
              ...setting,
              d: read.d,
              keys,
              labels: keys.map((_, i) => fileLabel(i)),
              query: setting.query.concat(0).slice(0, read.d),
              chosen: 0,
            };
          });
        } else {
          notify(`Deciding ${read.n} keys …`);
          await new Promise(resolve => setTimeout(resolve, 30)); // the words first, the work after them
          const before = file;
          file = read;
          try {
            refresh();
          } catch (error) {
            file = before;
            throw error;
          }
        }
        notify(`${read.name}: ${read.n} × ${read.d}, ${read.dtype}`);
      } catch (error) {
        notify('');
        tell(error);
        update();
      }
    }

    function showCounts(set: KeySet): void {
      const told = countsOf(set);
      counts.replaceChildren(
        ...(['selectable', 'tied', 'unselectable', 'tied up to rounding', 'undecided'] as const)
          .filter(kind => (kind !== 'undecided' && kind !== 'tied up to rounding') || told[kind] > 0)
          .map(kind =>
            html(
              'div',
              { class: kind.replaceAll(' ', '-') },
              html('dt', {}, kind),
              html('dd', { 'data-testid': `count-${kind.replaceAll(' ', '-')}` }, String(told[kind])),
            ),
          ),
      );
    }

    function showBars(): void {
      bars.replaceChildren(
        ...setting.keys.map((_, i) => {
          const weight = answer.weights[i]!;
          return html(
            'div',
            { class: 'bar', role: 'listitem' },
            html('span', { class: 'bar-name' }, labelOf(setting, i)),
            html(
              'span',
              { class: 'bar-track' },
              html('span', {
                class: 'bar-fill',
                style: `width: ${(100 * weight).toFixed(2)}%; background: ${colour(i)}`,
              }),
            ),
            html('span', { class: 'bar-value', 'data-testid': `bar-${i + 1}` }, `${(100 * weight).toFixed(1)}\u00a0%`),
          );
        }),
      );
    }

    // What the core refuses is told, and the rest of the page goes on.
    function update(): void {
      try {
        refresh();
      } catch (error) {
        tell(error);
      }
    }

    function tell(error: unknown): void {
      problem.textContent = error instanceof Error ? error.message : String(error);
      problem.hidden = false;
    }

    function refresh(): void {
      const name = normName(setting);
      projection.show(setting.projection);
      scaling.show(setting.scaling);
      norm.textContent = {
        none: 'No norm.',
        center: 'Projection alone.',
        rmsnorm: 'Scaling alone is RMSNorm.',
        layernorm:
          'Both together are LayerNorm.' +
          (setting.d === 2 && !file
            ? ' In the plane the projection leaves a line, which meets the circle in two points: all keys fall on these. In space it leaves a circle.'
            : ''),
      }[name]!;
      for (const part of [dimension.element, magnitudeBox, temperature.element, weightsPanel, copy])
        part.hidden = file !== undefined;
      back.hidden = file === undefined;
      if (file) {
        fileAnswer = decideFile(core, file, name);
        drawShadow(shadow, fileAnswer);
        drawing.replaceChildren(shadow, caption);
        caption.textContent = `The ${file.n} keys along their first two principal directions, which hold ${shown(100 * fileAnswer.share)} % of their variance. It is a shadow: the verdicts are decided in all ${fileAnswer.set.rank} dimensions of their hull. Filled: selectable; hollow: unselectable. A link does not carry the file.`;
        fact.textContent = '';
        preset.show('');
        summary.textContent = sentenceOf(fileAnswer.set, listed().labels, fileAnswer.undefinedRows);
        showCounts(fileAnswer.set);
        table.replaceChildren(tableOf(listed()));
        return;
      }
      answer = compute(core, setting);
      if (figure.element.parentNode !== drawing) drawing.replaceChildren(figure.element, caption);
      figure.draw(setting, answer);
      caption.textContent = legendOf(setting, answer);
      dimension.show(String(setting.d));
      const matching = fromFile(setting) ? undefined : presetOf(setting.keys); // an example's text speaks of Key 1, not of key 0
      preset.show(matching?.id ?? '');
      fact.textContent = matching?.fact ?? '';
      const chosen = labelOf(setting, setting.chosen);
      magnitude.setLabel(`${chosen} magnitude`);
      longest = Math.max(longest, usualLength, Math.ceil(Math.hypot(...setting.keys[setting.chosen]!)));
      magnitude.setMax(longest);
      magnitude.show(Math.hypot(...setting.keys[setting.chosen]!));
      temperature.show(setting.temperature);
      add.disabled = setting.keys.length >= mostKeys;
      remove.disabled = setting.keys.length <= 1;
      remove.textContent = `Remove ${chosen}`;
      summary.textContent = sentenceOf(answer.set, listed().labels, answer.undefinedRows);
      showCounts(answer.set);
      showBars();
      if (!table.contains(document.activeElement)) {
        table.replaceChildren(
          tableOf(listed(), (index, label) => {
            (document.activeElement as HTMLElement | null)?.blur?.();
            change(() => (setting.labels[index] = label === `Key ${index + 1}` ? '' : label), true);
          }),
        );
      }
    }

    function readAddress(): void {
      const { id, values } = parseAddress(location.hash);
      const bare = values.toString() === '' && (id === '' || id === view.id);
      const { setting: read, wrong } = readSetting(state, bare ? first : settingOf(linked));
      setting = read;
      longest = 0;
      figure.refit();
      if (id !== '' && id !== view.id) wrong.unshift(`there is no view “${id.slice(0, 24)}”`);
      badLink.hidden = wrong.length === 0;
      badLink.textContent =
        wrong.length === 0 ? '' : `The link could not be followed: ${wrong.join('; ')}; the default is shown instead.`;
    }
    state.onChange(() => {
      closeFile();
      readAddress();
      update();
    });
    readAddress();
    update();
    return () => {
      gone = true;
    };
  },
};

export default view;
