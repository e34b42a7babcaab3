// What the view Select shows: the keys, what the reader set, and what the core says about them.
import { call, type Core } from '../core';
import type { State } from '../view';
import type { KeySet } from './verdicts';

export * from './verdicts';

export interface Setting {
  d: number; // 2 or 3
  keys: number[][]; // before the norm
  labels: string[];
  query: number[];
  projection: boolean;
  scaling: boolean;
  temperature: number;
  chosen: number; // the key whose magnitude the slider moves and whose certificate is drawn
}

export interface Arc {
  keys: number[];
  from: number;
  to: number;
}

export interface Answer {
  normed: number[][];
  undefinedRows: number; // rows the scaling leaves at 0
  set: KeySet;
  scores: Float64Array;
  weights: Float64Array;
  arcs: Arc[]; // in the plane
  edges: [number, number][]; // of the hull
}

export const mostKeys = 24;
export const largest = 100; // of a coordinate that can be set here

export function normName(setting: { projection: boolean; scaling: boolean }): string {
  return setting.projection ? (setting.scaling ? 'layernorm' : 'center') : setting.scaling ? 'rmsnorm' : 'none';
}

export function rowsOf(values: ArrayLike<number>, n: number, d: number): number[][] {
  return Array.from({ length: n }, (_, i) => Array.from({ length: d }, (_, c) => values[i * d + c]!));
}

// Divided by the largest magnitude: no sum of squares, of differences or of the values overflows or vanishes.
export function scaled(values: Float64Array): Float64Array {
  let most = 0;
  for (const value of values) most = Math.max(most, Math.abs(value));
  return most > 0 && most < Infinity ? values.map(value => value / most) : values;
}

export function compute(core: Core, setting: Setting): Answer {
  const { keys, d, query, temperature } = setting;
  const n = keys.length;
  const normed = call<{ values: Float64Array; undefinedRows: number; set: KeySet }>(
    core,
    'decideNormed',
    keys.flat(),
    n,
    d,
    normName(setting),
    2 ** -53,
    0,
  );
  const { set } = normed;
  const { scores, weights } = call<{ scores: Float64Array; weights: Float64Array }>(
    core,
    'attention',
    normed.values,
    n,
    d,
    query,
    temperature,
  );
  let arcs: Arc[] = [],
    edges: [number, number][];
  if (d === 2) {
    const kinds = set.keys.map(key => ['selectable', 'tied', 'unselectable'].indexOf(key.verdict));
    const fan = call<{ arcs: Arc[]; polygon: number[] }>(core, 'fan', normed.values, n, kinds);
    arcs = fan.arcs;
    edges = fan.polygon.map((key, i) => [key, fan.polygon[(i + 1) % fan.polygon.length]!]);
  } else {
    edges = call<[number, number][]>(core, 'hullEdges', normed.values, n);
  }
  return {
    normed: rowsOf(normed.values, n, d),
    undefinedRows: setting.scaling ? normed.undefinedRows : 0,
    set,
    scores,
    weights,
    arcs,
    edges,
  };
}

export const labelOf = (setting: { labels: string[] }, index: number): string =>
  setting.labels[index] || `Key ${index + 1}`;

// Keys of a file are called as the program and its reports call them, which count from 0; those of the examples have
// the names their texts speak of: Key 1, Key 2, …
export const fileLabel = (index: number): string => `key ${index}`;
const fileNumber = (label: string | undefined): string | undefined => /^key (\d{1,6})$/.exec(label ?? '')?.[1];
export const fromFile = (setting: { labels: string[] }): boolean =>
  setting.labels.some(label => fileNumber(label) !== undefined);

// The number of a key as its name has it.
export const numberOf = (setting: { labels: string[] }, index: number): string =>
  fileNumber(setting.labels[index]) ?? String(index + 1);

// The label of one key more: the next number among keys of a file.
export function nextLabel(setting: { labels: string[] }): string {
  return fromFile(setting)
    ? fileLabel(1 + Math.max(...setting.labels.map(label => Number(fileNumber(label) ?? -1))))
    : '';
}

const short = (value: number): string => String(+value.toPrecision(12));

export function writeSetting(state: State, setting: Setting, replace = true): void {
  state.set(
    {
      keys: setting.keys.map(key => key.map(short).join(',')).join(';'),
      labels: setting.labels.some(Boolean) ? setting.labels.map(encodeURIComponent).join(';') : null,
      query: setting.query.map(short).join(','),
      norm: normName(setting),
      temperature: short(setting.temperature),
      key: String(setting.chosen + 1),
    },
    { replace },
  );
}

const norms = ['none', 'center', 'rmsnorm', 'layernorm'];

// Reads the address; in place of what does not make sense there stands `fallback`, and `wrong` says why.
export function readSetting(state: State, fallback: Setting): { setting: Setting; wrong: string[] } {
  const wrong: string[] = [];
  const quoted = (text: string) => `“${text.length > 24 ? text.slice(0, 24) + '…' : text}”`;
  const vector = (text: string): number[] => text.split(',').map(part => (part.trim() === '' ? NaN : Number(part)));
  const misfit = (text: string): string | undefined =>
    text.split(',').find(part => part.trim() === '' || !(Math.abs(Number(part)) <= largest));
  const notNumber = (part: string) =>
    part.trim() === '' ? 'an empty place' : `${quoted(part)}, which is not a number from −${largest} to ${largest}`;

  let keys = fallback.keys;
  const text = state.get('keys', '');
  if (text) {
    const parts = text.split(';'),
      bad = parts.map(misfit).find(part => part !== undefined);
    const read = parts.map(vector),
      d = read[0]!.length;
    if (parts.length > mostKeys) wrong.push(`it has ${parts.length} keys, more than the ${mostKeys} a link can hold`);
    else if (bad !== undefined) wrong.push(`its keys hold ${notNumber(bad)}`);
    else if (d !== 2 && d !== 3) wrong.push(`its keys have ${d} ${d === 1 ? 'coordinate' : 'coordinates'}, not 2 or 3`);
    else if (!read.every(key => key.length === d)) wrong.push('its keys differ in their number of coordinates');
    else keys = read;
  }
  const d = keys[0]!.length;

  let query: number[] = Array.from({ length: d }, (_, c) => fallback.query[c] ?? 0);
  const asked = state.get('query', '');
  if (asked) {
    const bad = misfit(asked),
      read = vector(asked);
    if (bad !== undefined) wrong.push(`its query holds ${notNumber(bad)}`);
    else if (read.length === d) query = read;
    else if (wrong.length === 0)
      wrong.push(`its query has ${read.length} ${read.length === 1 ? 'coordinate' : 'coordinates'} and the keys ${d}`);
  }
  let norm = state.get('norm', normName(fallback));
  if (!norms.includes(norm)) {
    wrong.push(`its norm ${quoted(norm)} is none of ${norms.join(', ')}`);
    norm = normName(fallback);
  }
  let temperature = Number(state.get('temperature', String(fallback.temperature)));
  if (!(temperature >= 0.05 && temperature <= 5)) {
    wrong.push(`its temperature ${quoted(state.get('temperature', ''))} is not from 0.05 to 5`);
    temperature = fallback.temperature;
  }
  let chosen = Number(state.get('key', String(Math.min(fallback.chosen, keys.length - 1) + 1))) - 1;
  if (!(Number.isInteger(chosen) && chosen >= 0 && chosen < keys.length)) {
    if (keys !== fallback.keys || !text) wrong.push(`it chooses key ${quoted(state.get('key', ''))} of ${keys.length}`);
    chosen = 0;
  }
  const labels = state
    .get('labels', '')
    .split(';')
    .map(label => {
      try {
        return decodeURIComponent(label).slice(0, 40);
      } catch {
        wrong.push(`the name ${quoted(label)} is not encoded as a link needs`);
        return '';
      }
    });
  return {
    wrong,
    setting: {
      d,
      keys: keys.map(key => [...key]),
      labels: keys.map((_, i) => (keys === fallback.keys && text ? '' : (labels[i] ?? ''))),
      query,
      projection: norm === 'center' || norm === 'layernorm',
      scaling: norm === 'rmsnorm' || norm === 'layernorm',
      temperature,
      chosen,
    },
  };
}
