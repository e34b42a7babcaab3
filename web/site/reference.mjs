// The reference of a command: its options, and the fields of its result, both as they say of themselves (tests write the option
// tables of docs/*.md and the schemas from `describe`).
import { escape } from './markdown.mjs';

// command → the Markdown of its table, from pages of docs/.
export function optionTables(pages) {
  const tables = new Map();
  for (const source of pages)
    for (const [, command, table] of source.matchAll(/<!-- options of (.*?) -->\n([\s\S]*?)<!-- end of options -->/g))
      tables.set(command, table.trim());
  return tables;
}

function typeOf(rule) {
  if (rule.$ref) return `<a href="#${escape(rule.$ref.split('/').at(-1))}">${escape(rule.$ref.split('/').at(-1))}</a>`;
  if (rule.const !== undefined) return `<code>${escape(JSON.stringify(rule.const))}</code>`;
  if (rule.enum) return rule.enum.map(each => `<code>${escape(String(each))}</code>`).join(', ');
  if (rule.type === 'array' && rule.items) return `list of ${typeOf(rule.items)}`;
  const type = [rule.type ?? 'any'].flat().join(' or ');
  const range = [
    ['from', rule.minimum],
    ['above', rule.exclusiveMinimum],
    ['to', rule.maximum],
    ['below', rule.exclusiveMaximum],
  ].filter(([, limit]) => limit !== undefined);
  return escape(type + range.map(([word, limit]) => ` ${word} ${limit}`).join(''));
}

function rows(rule, prefix) {
  let html = '';
  const required = new Set(rule.required ?? []);
  for (const [name, field] of Object.entries(rule.properties ?? {})) {
    const path = prefix + name,
      inner = field.type === 'array' ? field.items : field;
    html += `<tr><td><code>${escape(path)}</code></td><td>${typeOf(field)}</td><td>${escape(field.description ?? '')}${
      required.has(name) ? '' : ' <span class="seldom">(not always there)</span>'
    }</td></tr>\n`;
    if (inner?.properties) html += rows(inner, path + (field.type === 'array' ? '[].' : '.'));
  }
  return html;
}

const fields = (rule, label) =>
  `<div class="table-room" tabindex="0" role="region" aria-label="${escape(label)}"><table class="fields">
<thead><tr><th>field</th><th>type</th><th>what it is</th></tr></thead>
<tbody>
${rows(rule, '')}</tbody></table></div>\n`;

// { html, headings } of the fields of a result.
export function fieldsOf(schema, file) {
  const headings = [{ level: 2, text: 'Result', anchor: 'result' }];
  let html = `<h2 id="result">Result</h2>
<p>${escape(schema.description ?? '')} <code>--json</code> prints it, <code>results.json</code> of a run holds it, and Python has its fields as
attributes. As a <a href="${escape(file)}">JSON Schema</a>.</p>\n${fields(schema, 'Fields of the result')}`;
  for (const [name, rule] of Object.entries(schema.$defs ?? {})) {
    headings.push({ level: 3, text: name, anchor: name });
    html += `<h3 id="${escape(name)}"><code>${escape(name)}</code></h3>\n`;
    html += rule.properties ? fields(rule, `Fields of ${name}`) : `<p>${typeOf(rule)}</p>\n`;
  }
  return { html, headings };
}
