// Everything of the kit that needs no page: what tests/browser/kit_test.mjs looks at.
export { Axis } from './axis';
export { csv, parseCsv } from './csv';
export { colour, dashes } from './palette';
export { ticks } from './ticks';
