// What the page says of a set of keys, in sentences.
import { stateOf, type KeySet } from './verdicts';

// Every key is in one of them. labels: what each key is called; undefinedRows: how many a norm left at 0.
export function sentenceOf(set: KeySet, labels: string[], undefinedRows: number): string {
  const n = set.keys.length;
  const named = (state: string) => set.keys.flatMap((key, i) => (stateOf(key) === state ? [labels[i]!] : []));
  const hidden = named('unselectable'),
    tied = named('tied'),
    nearly = named('tied up to rounding'),
    undecided = named('undecided');
  const list = (names: string[]) =>
    names.length <= 4 ? names.join(', ') : `${names.slice(0, 3).join(', ')} and ${names.length - 3} more`;
  const parts: string[] = [];
  if (named('selectable').length === n)
    parts.push(
      n === 1 ? 'One key alone is always selected.' : `All ${n} keys can be selected: each is a vertex of the hull.`,
    );
  if (hidden.length > 0)
    parts.push(
      `${list(hidden)} ${hidden.length === 1 ? 'is' : 'are'} unselectable: inside the hull of the others, where no query gives the highest score.`,
    );
  if (tied.length > 0)
    parts.push(`${list(tied)} ${tied.length === 1 ? 'is' : 'are'} tied: on top of some query, but never alone.`);
  if (nearly.length > 0)
    parts.push(
      `${list(nearly)} ${nearly.length === 1 ? 'is' : 'are'} tied up to rounding: the last digits of the keys decide, not a query.`,
    );
  if (undecided.length > 0)
    parts.push(
      `${list(undecided)} ${undecided.length === 1 ? 'is' : 'are'} undecided: rational arithmetic would need more than it may take here.`,
    );
  if (undefinedRows > 0)
    parts.push(
      `${undefinedRows} ${undefinedRows === 1 ? 'key has' : 'keys have'} nothing to scale and ${undefinedRows === 1 ? 'stays' : 'stay'} at 0.`,
    );
  return parts.join(' ');
}
