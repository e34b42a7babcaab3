// Section 11: what a rerun of both papers found, from the file that scripts/page-audit makes of its results.
import { html } from '../kit/elements';
import audit from './audit.json';
import { link, note, paragraph, type Section } from './section';

const columns = ['where', 'claim', 'published', 'verdict', 'measured'];
const kinds: [kind: string, mark: string, words: string][] = [
  ['holds', '✓', 'hold'],
  ['holds only if', '±', 'hold under a condition'],
  ['does not hold', '✗', 'do not hold'],
  ['open', '?', 'not settled by this run'],
  ['answered', '→', 'questions answered'],
];

export const found: Section = {
  id: 'audit',
  title: 'Do the papers hold?',
  mount({ words: text, figure }) {
    text.append(
      paragraph(
        'One command, normscope paper, reruns the figures and tables of both papers and judges every claim: the published value beside what was measured, and where they differ, why.',
      ),
      html(
        'ul',
        { class: 'tally' },
        ...kinds.map(([kind, mark, words]) => {
          const count = audit.claims.filter(claim => claim.kind === kind).length;
          return html(
            'li',
            { 'data-testid': `audit-${kind.replaceAll(' ', '-')}`, 'data-kind': kind },
            html('span', { class: 'mark', 'aria-hidden': 'true' }, mark),
            ` ${words}: ${count}`,
          );
        }),
      ),
      paragraph(
        link(
          'https://arxiv.org/abs/2305.02582',
          'Brody, Alon, Yahav 2023: On the Expressivity Role of LayerNorm in Transformers’ Attention',
        ),
      ),
      paragraph(
        link(
          'https://arxiv.org/abs/2405.18781',
          'Wu, Ajorlou, Wang, Jegelka, Jadbabaie 2024: On the Role of Attention Masks and LayerNorm in Transformers',
        ),
      ),
      paragraph(link('theory.html', 'The theory behind every verdict on this page')),
      note(`Run with ${audit.command}; normscope ${audit.version} (${audit.commit}), ${audit.settings}.`),
    );
    const rows = audit.claims.map(claim =>
      html(
        'tr',
        { 'data-kind': claim.kind },
        html('th', { scope: 'row' }, claim.where),
        html('td', { 'data-label': columns[1]! }, claim.claim),
        html('td', { 'data-label': columns[2]! }, claim.published),
        html(
          'td',
          { class: 'verdict-cell', 'data-label': columns[3]! },
          html(
            'span',
            { class: 'mark', 'aria-hidden': 'true' },
            kinds.find(([kind]) => kind === claim.kind)?.[1] ?? '',
          ),
          ` ${claim.verdict}`,
        ),
        html('td', { 'data-label': columns[4]! }, claim.measured),
      ),
    );
    figure.append(
      html(
        'div',
        { class: 'table-room audit-room', tabindex: '0', role: 'region', 'aria-label': 'Claims and verdicts' },
        html(
          'table',
          { class: 'audit-table', 'data-testid': 'audit-table' },
          html('thead', {}, html('tr', {}, ...columns.map(words => html('th', { scope: 'col' }, words)))),
          html('tbody', {}, ...rows),
        ),
      ),
    );
    return {};
  },
};
