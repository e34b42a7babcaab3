// The public headers as pages: what a header says of itself, then every declaration under what is said of it. A header is read as
// this project writes them: comments of //, blank lines between what does not belong together, namespace normscope not indented.
import { anchorOf, code, escape } from './markdown.mjs';

const words = comment => comment.map(line => line.replace(/^\s*\/\/ ?/, '')).join('\n');

// Lines that begin at the margin are sentences; indented ones are lists and equations, and stay as they are.
function prose(comment) {
  const parts = [];
  for (const line of words(comment).split('\n')) {
    const kind = line.trim() === '' ? '' : /^ {2,}/.test(line) ? 'kept' : 'sentence';
    if (kind !== '' && parts.at(-1)?.kind === kind) parts.at(-1).lines.push(line);
    else parts.push({ kind, lines: [line] });
  }
  return parts
    .filter(({ kind }) => kind !== '')
    .map(({ kind, lines }) =>
      kind === 'kept'
        ? `<pre class="said" tabindex="0" aria-label="Set apart">${escape(lines.join('\n'))}</pre>`
        : `<p>${escape(lines.join(' '))}</p>`,
    )
    .join('\n');
}

// What results say of their fields for JSON and tables is in the reference of commands.
function withoutDescribe(lines) {
  const kept = [];
  let depth = 0,
    skipping = false;
  for (const line of lines) {
    if (!skipping && /^\s*static (constexpr )?void describe\(/.test(line)) {
      skipping = true;
      depth = 0;
      if (kept.at(-1)?.trim() === '') kept.pop();
    }
    if (!skipping) {
      kept.push(line);
      continue;
    }
    depth += (line.match(/[{(]/g) ?? []).length - (line.match(/[})]/g) ?? []).length;
    if (depth === 0) skipping = false;
  }
  return kept;
}

function nameOf(declaration) {
  const text = declaration.join(' ').replace(/template <[^>]*>/, '');
  return (
    /^\s*(?:struct|class|enum class|enum|union)\s+(?:\[\[\w+\]\]\s*)?(\w+)/.exec(text)?.[1] ??
    /^\s*using\s+(\w+)\s*=/.exec(text)?.[1] ??
    /^\s*concept\s+(\w+)/.exec(text)?.[1] ??
    /(operator\s*\S+?|\w+)\s*\(/.exec(text)?.[1] ??
    /(\w+)\s*=/.exec(text)?.[1] ??
    /(\w+)\s*;/.exec(text)?.[1] ??
    ''
  );
}

// [{ comment: lines, declaration: lines, name }] of what stands between `namespace normscope {` and its end.
export function declarations(source) {
  const lines = source.split('\n'),
    from = lines.findIndex(line => /^namespace normscope( |\{|$)/.test(line)),
    to = lines.findLastIndex(line => /^}\s*\/\/ namespace normscope/.test(line));
  if (from < 0 || to < 0) return [];
  const found = [];
  let block = [],
    depth = 0;
  const end = () => {
    const first = block.findIndex(line => !/^\s*\/\//.test(line));
    if (block.length > 0)
      found.push(
        first < 0
          ? { comment: block, declaration: [], name: '' }
          : { comment: block.slice(0, first), declaration: withoutDescribe(block.slice(first)) },
      );
    block = [];
  };
  for (const line of lines.slice(from + 1, to)) {
    if (line.trim() === '' && depth === 0) {
      end();
      continue;
    }
    block.push(line);
    const bare = line.replace(/\/\/.*$/, '').replace(/"(\\.|[^"\\])*"|'(\\.|[^'\\])'/g, '');
    depth += (bare.match(/[{(]/g) ?? []).length - (bare.match(/[})]/g) ?? []).length;
  }
  end();
  for (const each of found) each.name = nameOf(each.declaration);
  return found;
}

// One page: { title, lead, html, headings }.
export function headerPage(file, source) {
  const c = !source.includes('namespace normscope');
  const lines = source.split('\n'),
    headings = [{ level: 1, text: file, anchor: anchorOf(file) }];
  let html = `<h1 id="${anchorOf(file)}">${escape(file)}</h1>\n`;
  if (c) {
    html += code(escape(source.trimEnd()), 'cpp', 'C');
    const lead = /^\/\* (.*?[.:?])/.exec(source)?.[1] ?? '';
    return { title: file, lead, html, headings };
  }
  const top = [];
  for (const line of lines.slice(lines[0] === '#pragma once' ? 1 : 0)) {
    if (!line.startsWith('//')) break;
    top.push(line);
  }
  html += prose(top) + code(escape(`#include <${file}>`), 'cpp', 'C++');
  const taken = new Map();
  for (const { comment, declaration, name } of declarations(source)) {
    if (declaration.length === 0 || name === '') {
      html += prose(comment) + (declaration.length ? code(escape(declaration.join('\n')), 'cpp', 'C++') : '');
      continue;
    }
    const before = taken.get(name) ?? 0;
    taken.set(name, before + 1);
    const anchor = before === 0 ? anchorOf(name) : `${anchorOf(name)}-${before}`;
    headings.push({ level: 2, text: name, anchor });
    html += `<h2 id="${anchor}"><code>${escape(name)}</code> <a class="anchor" href="#${anchor}" aria-label="Link to: ${escape(name)}">#</a></h2>\n`;
    html += prose(comment) + code(escape(declaration.join('\n')), 'cpp', `Declaration of ${name}`);
  }
  const lead = words(top)
    .split(/(?<=[.?:])\s/)[0]
    .replaceAll('\n', ' ');
  return { title: file, lead, html, headings };
}
