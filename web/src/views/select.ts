import { call } from '../core';
import type { View } from '../view';

const view: View = {
  id: 'select',
  label: 'Select',
  mount(root, { core }) {
    const answer = call<{ keys: { verdict: string }[] }>(core, 'decideKeys', [0, 0, 1, 0, 0, 1], 3, 2, 2 ** -53, true);
    root.textContent = answer.keys.map(key => key.verdict).join(', ');
    return () => {};
  },
};
export default view;
