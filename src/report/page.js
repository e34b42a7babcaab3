// What a report can do beyond being read: legends that hide and show, zoom, values under the pointer and under the
// arrow keys, scenes to turn, data as tables, downloads. The figures are drawn already and are complete without any of
// it; the script finds what it needs in their data-* attributes and in the CSV of each figure.
(() => {
'use strict';
const SVG = 'http://www.w3.org/2000/svg';
const root = document.documentElement;
const hint = document.getElementById('hint'), live = document.getElementById('live');
root.classList.add('js');

const numbers = text => (text ?? '').split(' ').map(Number);
const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
const short = value => Number.isFinite(value) ? String(Number(value.toPrecision(4))) : 'n/a';

function shape(name, attributes, parent) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  parent?.append(element);
  return element;
}

function button(words, parent, action) {
  const element = document.createElement('button');
  element.type = 'button';
  element.textContent = words;
  element.addEventListener('click', action);
  parent.append(element);
  return element;
}

function showHint(text, x, y) {
  hint.hidden = !text;
  if (!text) return;
  hint.textContent = text;
  const right = x + 14 + hint.offsetWidth > innerWidth, below = y + 14 + hint.offsetHeight > innerHeight;
  hint.style.left = Math.max(4, right ? x - 14 - hint.offsetWidth : x + 14) + 'px';
  hint.style.top = Math.max(4, below ? y - 14 - hint.offsetHeight : y + 14) + 'px';
}
const hideHint = () => { hint.hidden = true; };
const say = text => { live.textContent = text; };
// Where a place of a figure is on the screen.
function hintAt(svg, text, x, y) {
  const at = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());
  showHint(text, at.x, at.y);
}
const inside = (svg, event) =>
  new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());

// Rows of fields; quotes as in RFC 4180.
function parseCsv(text) {
  const rows = [];
  let row = [], at = 0;
  while (at < text.length) {
    let field = '';
    if (text[at] === '"') {
      for (;;) {
        const end = text.indexOf('"', at + 1);
        if (end < 0) { field += text.slice(at + 1); at = text.length; break; }
        field += text.slice(at + 1, end);
        at = end + 1;
        if (text[at] !== '"') break;
        field += '"';
      }
    } else {
      let end = at;
      while (end < text.length && text[end] !== ',' && text[end] !== '\n' && text[end] !== '\r') ++end;
      field = text.slice(at, end);
      at = end;
    }
    row.push(field);
    if (text[at] === ',') {
      ++at;
      if (at === text.length) row.push('');
      continue;
    }
    while (text[at] === '\r' || text[at] === '\n') {
      if (text[at++] === '\n') break;
    }
    rows.push(row);
    row = [];
  }
  if (row.length) rows.push(row);
  return rows;
}

// --- legends ---

function startLegend(figure) {
  const entries = [...figure.querySelectorAll('.entry')];
  if (!entries.length) return;
  const classes = entries.map(entry => entry.dataset.toggleClass).filter(Boolean);
  const selector = ['[data-name]', ...classes.map(name => '.' + CSS.escape(name))].join(',');
  const targets = [...figure.querySelectorAll(selector)].filter(target => !target.closest('.entry'));
  const pressed = entry => entry.getAttribute('aria-pressed') === 'true';
  const apply = () => {
    const names = new Set(), hidden = [];
    for (const entry of entries) {
      if (pressed(entry)) continue;
      if (entry.dataset.toggleClass) hidden.push(entry.dataset.toggleClass);
      else names.add(entry.dataset.toggle);
    }
    for (const target of targets) {
      const off = names.has(target.dataset.name) || hidden.some(name => target.classList.contains(name));
      if (target instanceof SVGElement) off ? target.setAttribute('display', 'none') : target.removeAttribute('display');
      else target.classList.toggle('off', off);
    }
    figure.dispatchEvent(new Event('legend'));
  };
  const toggle = entry => {
    entry.setAttribute('aria-pressed', String(!pressed(entry)));
    apply();
  };
  // Alone, or, if it is alone already, all again.
  const isolate = entry => {
    const alone = entries.every(other => pressed(other) === (other === entry));
    for (const other of entries) other.setAttribute('aria-pressed', String(alone || other === entry));
    apply();
  };
  for (const entry of entries) {
    entry.setAttribute('role', 'button');
    entry.setAttribute('tabindex', '0');
    entry.setAttribute('aria-pressed', 'true');
    entry.setAttribute('aria-label', (entry.dataset.toggle ?? entry.textContent.trim()) + ', shown');
    entry.addEventListener('click', () => toggle(entry));
    entry.addEventListener('dblclick', event => { event.preventDefault(); isolate(entry); });
    entry.addEventListener('keydown', event => {
      if (event.key !== 'Enter' && event.key !== ' ') return;
      event.preventDefault();
      event.shiftKey ? isolate(entry) : toggle(entry);
    });
  }
}

// --- ticks, as src/report/axis.cc sets them ---

function plain(value, decimals) {
  const [whole, part] = Math.abs(value).toFixed(clamp(decimals, 0, 20)).split('.');
  return (value < 0 ? '−' : '') + whole.replace(/\B(?=(\d{3})+$)/g, ',') + (part ? '.' + part : '');
}
function power(value, mantissa, exponent) {
  return { value, label: mantissa === '1' ? '10' : mantissa + '×10', power: plain(exponent, 0) };
}
function linearTicks(low, high, fits) {
  const largest = Math.max(Math.abs(low), Math.abs(high)), first = Math.floor(Math.log10((high - low) / 20));
  for (let exponent = first; exponent < first + 4; ++exponent) {
    for (const factor of [1, 2, 5]) {
      const step = factor * 10 ** exponent, found = [];
      for (let i = Math.ceil(low / step - 1e-6); i <= Math.floor(high / step + 1e-6) && found.length < 100; ++i) {
        const value = i * step;
        if (i === 0) found.push({ value: 0, label: '0' });
        else if (exponent >= -6 && largest < 1e7) found.push({ value, label: plain(value, -exponent) });
        else {
          const top = Math.floor(Math.log10(largest));
          found.push(power(value, plain(value / 10 ** top, top - exponent), top));
        }
      }
      if (fits(found)) return found;
    }
  }
  return [];
}
function logTicks(low, high, fits) {
  const from = Math.log10(low), to = Math.log10(high), brief = from > -4.5 && to < 6.5;
  if (to - from < 0.7) return linearTicks(low, high, fits);
  const every = (step, factors) => {
    const found = [];
    for (let exponent = step * Math.floor(from / step); exponent <= to; exponent += step) {
      for (const factor of factors) {
        const place = exponent + Math.log10(factor), value = factor * 10 ** exponent;
        if (place < from - 1e-9 || place > to + 1e-9) continue;
        found.push(brief ? { value, label: plain(value, -exponent) } : power(value, String(factor), exponent));
      }
    }
    return found;
  };
  if (to - from < 3) {
    const found = every(1, [1, 2, 5]);
    if (fits(found)) return found;
  }
  for (const decades of [1, 2, 5, 10, 20, 50, 100, 200, 500]) {
    const found = every(decades, [1]);
    if (fits(found)) return found;
  }
  return [];
}

// --- curves ---

// The rows of `panel,curve,x,y,low,high`, by panel and curve.
function curvesOf(rows) {
  if (rows[0]?.join() !== 'panel,curve,x,y,low,high') return null;
  const panels = new Map();
  const number = text => text === '' || text === undefined ? NaN : Number(text);
  for (const [panel, curve, x, y, low, high] of rows.slice(1)) {
    if (!panels.has(panel)) panels.set(panel, new Map());
    const curves = panels.get(panel);
    if (!curves.has(curve)) curves.set(curve, []);
    curves.get(curve).push({ x: number(x), y: number(y), low: number(low), high: number(high) });
  }
  return panels;
}

let clips = 0;

class Plot {
  constructor(panel, svg, curves) {
    this.panel = panel;
    this.svg = svg;
    [this.left, this.top, this.right, this.bottom] = numbers(panel.dataset.frame);
    const logs = panel.dataset.log;
    const axis = (ends, log, from, to) => {
      const scale = log ? Math.log10 : value => value;
      const [low, high] = numbers(ends).map(scale);
      return { low, high, first: low, last: high, log, from, to, scale,
        at(value) { return from + (scale(value) - this.low) / (this.high - this.low) * (to - from); },
        value(pixel) {
          const place = this.low + (pixel - from) / (to - from) * (this.high - this.low);
          return log ? 10 ** place : place;
        },
        shows: value => Number.isFinite(value) && (!log || value > 0) };
    };
    this.x = axis(panel.dataset.x, logs.includes('x'), this.left, this.right);
    this.y = axis(panel.dataset.y, logs.includes('y'), this.bottom, this.top);
    this.curves = curves;
    this.plot = panel.querySelector('.plot');
    this.drawn = [...this.plot.querySelectorAll('.line, .band, .bars')];
    this.placed = [...this.plot.querySelectorAll('.dot, .mark')];
    for (const element of this.drawn) element.before_ = element.getAttribute('d');
    this.grid = panel.querySelector('.grid');
    this.ticks = panel.querySelector('.ticks');
    this.before = { grid: this.grid.getAttribute('d'), ticks: [...this.ticks.childNodes] };
    // The crosshair tells more than the single points did.
    panel.querySelector('.hints')?.remove();
    const [xLabel, yLabel] = panel.dataset.axes.split('\n');
    this.xLabel = xLabel || 'x';
    this.frame = shape('rect', { class: 'frame', x: this.left, y: this.top, width: this.right - this.left,
      height: this.bottom - this.top, fill: 'none', 'pointer-events': 'all', tabindex: 0, role: 'application',
      'aria-label': `${panel.dataset.title || 'Chart'}: ${yLabel || 'y'} over ${this.xLabel}. Left and right arrow keys ` +
        'read values, plus and minus zoom, zero shows all.' });
    this.plot.before(this.frame);
    this.cross = shape('g', { class: 'cross', display: 'none' }, panel);
    this.listen();
  }

  visible() {
    const hidden = new Set();
    for (const element of this.drawn) if (element.hasAttribute('display')) hidden.add(element.dataset.name);
    for (const element of this.placed)
      if (element.hasAttribute('display') && element.classList.contains('dot')) hidden.add(element.dataset.name);
    return [...this.curves].filter(([name]) => !name.startsWith('published: ') && !hidden.has(name));
  }

  listen() {
    const { panel, frame, svg } = this;
    let start = null, box = null, panned = null;
    panel.addEventListener('pointermove', event => {
      const at = inside(svg, event);
      if (start && panned) {
        const dx = (at.x - start.x) / (this.right - this.left) * (panned.x[1] - panned.x[0]);
        const dy = (at.y - start.y) / (this.bottom - this.top) * (panned.y[1] - panned.y[0]);
        return this.show([panned.x[0] - dx, panned.x[1] - dx], [panned.y[0] + dy, panned.y[1] + dy]);
      }
      if (start) {
        const x = clamp(at.x, this.left, this.right), y = clamp(at.y, this.top, this.bottom);
        if (!box && Math.hypot(x - start.x, y - start.y) > 5) box = shape('rect', { class: 'selection' }, panel);
        if (box) {
          for (const [key, value] of Object.entries({ x: Math.min(x, start.x), y: Math.min(y, start.y),
            width: Math.abs(x - start.x), height: Math.abs(y - start.y) })) box.setAttribute(key, value);
          hideHint();
          return;
        }
      }
      if (at.x < this.left - 2 || at.x > this.right + 2 || at.y < this.top - 2 || at.y > this.bottom + 2)
        return this.leave();
      // A published value tells its own story.
      if (event.target.dataset.hint) return showHint(event.target.dataset.hint, event.clientX, event.clientY);
      this.point(at.x, event);
    });
    panel.addEventListener('pointerleave', () => this.leave());
    frame.addEventListener('blur', () => this.leave());
    panel.addEventListener('pointerdown', event => {
      if (event.button !== 0 || event.pointerType === 'touch') return;
      const at = inside(svg, event);
      if (at.x < this.left || at.x > this.right || at.y < this.top || at.y > this.bottom) return;
      start = at;
      panned = event.shiftKey ? { x: [this.x.low, this.x.high], y: [this.y.low, this.y.high] } : null;
      panel.setPointerCapture(event.pointerId);
    });
    const end = event => {
      if (box && event.type === 'pointerup') {
        const part = name => Number(box.getAttribute(name));
        const place = (axis, pixel) => axis.low + (pixel - axis.from) / (axis.to - axis.from) * (axis.high - axis.low);
        const x = part('x'), y = part('y'), width = part('width'), height = part('height');
        // A box that is nearly a line zooms along it only.
        this.show(width > 5 ? [place(this.x, x), place(this.x, x + width)] : [this.x.low, this.x.high],
          height > 5 ? [place(this.y, y + height), place(this.y, y)] : [this.y.low, this.y.high]);
      }
      box?.remove();
      start = box = panned = null;
    };
    panel.addEventListener('pointerup', end);
    panel.addEventListener('pointercancel', end);
    panel.addEventListener('dblclick', () => this.reset());
    panel.addEventListener('wheel', event => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const at = inside(svg, event);
      this.zoom(event.deltaY < 0 ? 1.25 : 0.8, at.x, at.y);
    }, { passive: false });
    frame.addEventListener('keydown', event => {
      const keys = { '+': () => this.zoom(1.5), '=': () => this.zoom(1.5), '-': () => this.zoom(1 / 1.5),
        '0': () => this.reset(), Escape: () => this.leave(), ArrowRight: () => this.step(1),
        ArrowLeft: () => this.step(-1), Home: () => this.step(-Infinity), End: () => this.step(Infinity) };
      if (!keys[event.key] || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      keys[event.key]();
    });
  }

  leave() {
    hideHint();
    this.cross.setAttribute('display', 'none');
  }

  // Values of every curve at the x nearest to a pixel.
  point(pixel, event) {
    const curves = this.visible();
    let best = NaN, distance = Infinity;
    for (const [, points] of curves) {
      for (const { x, y } of points) {
        if (!this.x.shows(x) || !this.y.shows(y)) continue;
        const away = Math.abs(this.x.at(x) - pixel);
        if (away < distance) [best, distance] = [x, away];
      }
    }
    return Number.isFinite(best) ? this.read(best, curves, event) : '';
  }

  read(x, curves, event) {
    const most = 14, values = [];
    for (const [name, points] of curves) {
      const point = points.find(each => each.x === x && this.y.shows(each.y));
      if (point) values.push({ name, point });
    }
    values.sort((a, b) => b.point.y - a.point.y);
    const lines = values.map(({ name, point }) => `${name}: ${short(point.y)}` +
      (Number.isFinite(point.low) && Number.isFinite(point.high) ? ` [${short(point.low)} … ${short(point.high)}]` : ''));
    if (lines.length > most) lines.splice(most, Infinity, `… and ${values.length - most} more`);
    const text = `${this.xLabel} ${Number(x.toPrecision(8))}\n${lines.join('\n')}`;
    const at = this.x.at(x);
    this.cross.replaceChildren();
    this.cross.removeAttribute('display');
    if (at >= this.left - 1 && at <= this.right + 1) {
      shape('path', { d: `M${at} ${this.top}V${this.bottom}`, stroke: 'currentColor', 'stroke-opacity': 0.5,
        'stroke-dasharray': '3 3' }, this.cross);
      for (const { point } of values) {
        const y = this.y.at(point.y);
        if (y >= this.top && y <= this.bottom)
          shape('circle', { cx: at, cy: y, r: 3.5, fill: 'none', stroke: 'currentColor', 'stroke-width': 1.5 }, this.cross);
      }
    }
    if (event) showHint(text, event.clientX, event.clientY);
    else hintAt(this.svg, text, clamp(at, this.left, this.right), this.top + 20);
    this.current = x;
    return text;
  }

  // To the next x that a visible curve has, in sight.
  step(count) {
    const curves = this.visible(), all = new Set();
    for (const [, points] of curves) {
      for (const { x, y } of points) {
        if (!this.x.shows(x) || !this.y.shows(y)) continue;
        const at = this.x.at(x);
        if (at >= this.left - 0.5 && at <= this.right + 0.5) all.add(x);
      }
    }
    const sorted = [...all].sort((a, b) => a - b);
    if (!sorted.length) return say('Nothing is shown here.');
    let index = sorted.findIndex(x => x >= this.current);
    if (this.current === undefined || index < 0) index = count > 0 && this.current === undefined ? -1 : sorted.length - 1;
    index = clamp(index + count, 0, sorted.length - 1);
    say(this.read(sorted[index], curves));
  }

  zoom(factor, pixelX, pixelY) {
    const around = (axis, pixel) => {
      const middle = pixel === undefined ? (axis.low + axis.high) / 2
        : axis.low + (pixel - axis.from) / (axis.to - axis.from) * (axis.high - axis.low);
      return [middle - (middle - axis.low) / factor, middle + (axis.high - middle) / factor];
    };
    this.show(around(this.x, pixelX), around(this.y, pixelY));
  }

  // Ends in the axes' own measure (logarithms on logarithmic ones); never beyond what was drawn.
  show(x, y) {
    const fit = (axis, [low, high]) => {
      const whole = axis.last - axis.first, size = clamp(high - low, whole * 1e-9, whole);
      const begin = clamp((low + high - size) / 2, axis.first, axis.last - size);
      axis.low = begin;
      axis.high = size === whole ? axis.last : begin + size;
    };
    fit(this.x, x);
    fit(this.y, y);
    this.draw();
  }

  reset() {
    this.show([this.x.first, this.x.last], [this.y.first, this.y.last]);
  }

  draw() {
    const { x, y } = this;
    const whole = x.low === x.first && x.high === x.last && y.low === y.first && y.high === y.last;
    this.leave();
    if (whole) {
      for (const element of this.drawn) element.setAttribute('d', element.before_);
      for (const element of this.placed) element.removeAttribute('transform');
      this.plot.removeAttribute('clip-path');
      this.grid.setAttribute('d', this.before.grid);
      this.ticks.replaceChildren(...this.before.ticks);
      this.panel.removeAttribute('data-zoomed');
      return;
    }
    this.panel.dataset.zoomed = '1';
    if (!this.clip) {
      const path = shape('clipPath', { id: 'clip-' + ++clips });
      shape('rect', { x: this.left, y: this.top, width: this.right - this.left, height: this.bottom - this.top }, path);
      this.panel.prepend(path);
      this.clip = `url(#${path.id})`;
    }
    this.plot.setAttribute('clip-path', this.clip);
    for (const element of this.drawn) {
      const points = this.curves.get(element.dataset.name);
      if (!points) continue;
      const kind = element.classList;
      element.setAttribute('d', kind.contains('line') ? this.line(points) : kind.contains('band') ? this.band(points)
        : this.bars(points));
    }
    for (const element of this.placed) {
      const place = (axis, value, first, last) =>
        axis.at(value) - (axis.from + (axis.scale(value) - first) / (last - first) * (axis.to - axis.from));
      const dx = place(x, Number(element.dataset.x), x.first, x.last);
      const dy = place(y, Number(element.dataset.y), y.first, y.last);
      element.setAttribute('transform', `translate(${dx.toFixed(1)} ${dy.toFixed(1)})`);
    }
    this.drawTicks();
  }

  spot(point, value) {
    // Far beyond the frame numbers would grow without bounds; the line is cut there anyway.
    return `${clamp(this.x.at(point.x), -1e6, 1e6).toFixed(2)} ${clamp(this.y.at(value), -1e6, 1e6).toFixed(2)}`;
  }

  line(points) {
    let path = '', open = false;
    for (const point of points) {
      const shown = this.x.shows(point.x) && this.y.shows(point.y);
      if (shown) path += (open ? 'L' : 'M') + this.spot(point, point.y);
      open = shown;
    }
    return path || 'M0 0';
  }

  pieces(points) {
    const found = [];
    let open = false;
    for (const point of points) {
      const shown = this.x.shows(point.x) && this.y.shows(point.y) && Number.isFinite(point.low) && this.y.shows(point.high);
      if (shown && !open) found.push([]);
      if (shown) found[found.length - 1].push(point);
      open = shown;
    }
    return found;
  }

  // The lower end of an interval that reaches 0 is nowhere on a logarithmic axis.
  low(point) {
    return this.y.shows(point.low) ? this.spot(point, point.low)
      : `${clamp(this.x.at(point.x), -1e6, 1e6).toFixed(2)} 1000000`;
  }

  band(points) {
    return this.pieces(points).filter(piece => piece.length > 1).map(piece =>
      'M' + piece.map(point => this.spot(point, point.high)).join('L') +
      'L' + piece.reverse().map(point => this.low(point)).join('L') + 'Z').join('') || 'M0 0';
  }

  bars(points) {
    return this.pieces(points).filter(piece => piece.length === 1).map(([point]) =>
      'M' + this.spot(point, point.high) + 'L' + this.low(point)).join('') || 'M0 0';
  }

  drawTicks() {
    let grid = '';
    this.ticks.replaceChildren();
    for (const [axis, across] of [[this.x, true], [this.y, false]]) {
      const width = tick => (tick.label.length + (tick.power?.length ?? 0) * 0.8) * 7.2;
      const fits = found => found.every((tick, i) => i === 0 ||
        Math.abs(axis.at(tick.value) - axis.at(found[i - 1].value)) >=
          (across ? Math.max(48, (width(tick) + width(found[i - 1])) / 2 + 14) : 30));
      const ends = axis.log ? [10 ** axis.low, 10 ** axis.high] : [axis.low, axis.high];
      for (const tick of (axis.log ? logTicks : linearTicks)(...ends, fits)) {
        const at = axis.at(tick.value);
        grid += across ? `M${at.toFixed(1)} ${this.bottom}V${this.top}` : `M${this.left} ${at.toFixed(1)}H${this.right}`;
        const text = shape('text', across ? { x: at, y: this.bottom + 18, 'text-anchor': 'middle' }
          : { x: this.left - 8, y: at + 4, 'text-anchor': 'end' }, this.ticks);
        text.textContent = tick.label;
        if (tick.power) shape('tspan', { dy: -5, 'font-size': 9.5 }, text).textContent = tick.power;
      }
    }
    this.grid.setAttribute('d', grid || 'M0 0');
  }
}

// --- cells of heat maps and masks ---

class Cells {
  constructor(group, svg, table) {
    this.group = group;
    this.svg = svg;
    this.columns = Number(group.dataset.columns);
    this.frame = numbers(group.dataset.frame);
    this.rects = [...group.querySelectorAll('rect')];
    const told = this.rects.length > 0 && this.rects.every(rect => rect.dataset.hint);
    if (!this.columns || (!told && !group.dataset.where)) return;
    if (!told && !table()) return;
    this.rows = group.dataset.ys ? numbers(group.dataset.ys).length
      : told ? Math.ceil(this.rects.length / this.columns) : this.columns;
    this.text = told ? (row, column) => this.rects[row * this.columns + column]?.dataset.hint ?? ''
      : group.dataset.tokens ? this.maskText(table()) : this.cellText(table());
    this.row = this.column = 0;
    this.cursor = shape('rect', { class: 'cursor', width: 1, height: 1, display: 'none' }, group);
    // Without cells of its own to point at, one sheet over all takes the pointer.
    this.sheet = told ? null : shape('rect', { width: this.columns, height: this.rows, fill: 'none',
      'pointer-events': 'all' }, group);
    this.told = told;
    this.target().setAttribute('tabindex', '0');
    this.label();
    this.listen();
  }

  // What has the focus: the cell itself, or the sheet over all.
  target() {
    return this.told ? this.rects[this.row * this.columns + this.column] : this.sheet;
  }

  label() {
    const target = this.target(), title = this.group.dataset.title;
    target.setAttribute('role', 'img');
    target.setAttribute('aria-label', `${title ? title + ', ' : ''}${this.text(this.row, this.column).replace(/\n/g, ', ')}`);
  }

  // The row of the CSV with the x and the y of the cell, column by column.
  cellText({ header, rows }) {
    const [key, wanted] = split(this.group.dataset.where), [xName, yName] = this.group.dataset.axes.split(' ');
    const xs = this.group.dataset.xs.split(' '), ys = this.group.dataset.ys.split(' ');
    const where = header.indexOf(key), x = header.indexOf(xName), y = header.indexOf(yName), found = new Map();
    for (const row of rows) if (row[where] === wanted) found.set(row[x] + ' ' + row[y], row);
    return (row, column) => {
      const cell = found.get(xs[column] + ' ' + ys[row]);
      if (!cell) return `${xName} ${xs[column]}, ${yName} ${ys[row]}: n/a`;
      return header.map((name, i) => i === where || cell[i] === '' ? '' : `${name.replace(/_/g, ' ')} ${short(Number(cell[i]))}`)
        .filter(Boolean).join('\n');
    };
  }

  maskText({ header, rows }) {
    const [key, wanted] = split(this.group.dataset.where), tokens = Number(this.group.dataset.tokens);
    const at = name => header.indexOf(name), shares = new Map();
    const begin = cell => Math.floor(cell * tokens / this.columns);
    const cell = token => Math.floor(((token + 1) * this.columns - 1) / tokens);
    for (const row of rows) {
      if (row[at(key)] !== wanted) continue;
      const line = cell(Number(row[at('first_row')]));
      for (let c = cell(Number(row[at('first_column')])); c <= cell(Number(row[at('last_column')])); ++c)
        shares.set(line * this.columns + c, Number(row[at('share')]));
    }
    const range = c => begin(c + 1) - begin(c) > 1 ? `tokens ${begin(c)} to ${begin(c + 1) - 1}` : `token ${begin(c)}`;
    return (row, column) => {
      const share = shares.get(row * this.columns + column) ?? 0;
      const verb = begin(row + 1) - begin(row) > 1 ? 'attend' : 'attends';
      if (share === 0) return `${range(row)} ${verb === 'attend' ? 'do' : 'does'} not attend to ${range(column)}`;
      return `${range(row)} ${verb} to ${range(column)}` + (share < 1 ? `: ${short(100 * share)} % of the pairs` : '');
    };
  }

  place(event) {
    const at = inside(this.svg, event), [left, top, right, bottom] = this.frame;
    return [clamp(Math.floor((at.y - top) / (bottom - top) * this.rows), 0, this.rows - 1),
      clamp(Math.floor((at.x - left) / (right - left) * this.columns), 0, this.columns - 1)];
  }

  listen() {
    const { group } = this;
    if (this.sheet) {
      group.addEventListener('pointermove', event => showHint(this.text(...this.place(event)), event.clientX, event.clientY));
      group.addEventListener('pointerleave', hideHint);
    }
    group.addEventListener('focusin', () => { if (this.target().matches(':focus-visible')) this.tell(); });
    group.addEventListener('focusout', () => { hideHint(); this.cursor.setAttribute('display', 'none'); });
    group.addEventListener('keydown', event => {
      const moves = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0], Home: [0, -1e9],
        End: [0, 1e9], PageUp: [-1e9, 0], PageDown: [1e9, 0] };
      const move = moves[event.key];
      if (!move || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      const old = this.target();
      this.row = clamp(this.row + move[0], 0, this.rows - 1);
      this.column = clamp(this.column + move[1], 0, this.columns - 1);
      const target = this.target();
      if (target !== old) old.setAttribute('tabindex', '-1');
      target.setAttribute('tabindex', '0');
      this.label();
      target.focus({ preventScroll: true });
      this.tell();
      if (this.sheet) say(this.text(this.row, this.column));  // the focus did not move, so nobody reads the label
    });
  }

  tell() {
    const [left, top, right, bottom] = this.frame;
    this.cursor.setAttribute('x', this.column);
    this.cursor.setAttribute('y', this.row);
    this.cursor.removeAttribute('display');
    hintAt(this.svg, this.text(this.row, this.column), left + (this.column + 1) / this.columns * (right - left),
      top + (this.row + 1) / this.rows * (bottom - top));
  }
}
const split = text => [text.slice(0, text.indexOf('=')), text.slice(text.indexOf('=') + 1)];

// --- points in three dimensions, projected as in src/report/scatter_svg.cc ---

function pointShape(kind, x, y, radius) {
  const f = value => value.toFixed(1);
  if (kind === 1) return `M${f(x - 0.89 * radius)} ${f(y - 0.89 * radius)}h${f(1.78 * radius)}v${f(1.78 * radius)}h${f(-1.78 * radius)}Z`;
  if (kind === 2) return `M${f(x)} ${f(y - 1.4 * radius)}l${f(1.3 * radius)} ${f(2.2 * radius)}h${f(-2.6 * radius)}Z`;
  if (kind === 3) {
    const r = f(1.35 * radius);
    return `M${f(x)} ${f(y - 1.35 * radius)}l${r} ${r}l-${r} ${r}l-${r} -${r}Z`;
  }
  return `M${f(x - radius)} ${f(y)}a${f(radius)} ${f(radius)} 0 1 1 ${f(2 * radius)} 0a${f(radius)} ${f(radius)} 0 1 1 -${f(2 * radius)} 0Z`;
}
function arrowHead(x0, y0, x, y, size) {
  const length = Math.hypot(x - x0, y - y0);
  if (length < 1) return pointShape(0, x, y, size / 2);
  const ax = (x - x0) / length * size, ay = (y - y0) / length * size, f = value => value.toFixed(1);
  return `M${f(x)} ${f(y)}L${f(x - ax - 0.4 * ay)} ${f(y - ay + 0.4 * ax)}L${f(x - ax + 0.4 * ay)} ${f(y - ay - 0.4 * ax)}Z`;
}

class Scene {
  constructor(panel, svg) {
    this.panel = panel;
    this.svg = svg;
    [this.x0, this.y0] = numbers(panel.dataset.centre);
    this.radius = Number(panel.dataset.radius);
    this.half = this.radius * Number(panel.dataset.beyond);
    this.home = numbers(panel.dataset.view);
    [this.azimuth, this.elevation] = this.home;
    this.items = [...panel.querySelectorAll('[data-at]')].map(element => ({ element, at: numbers(element.dataset.at) }));
    const [left, top, right, bottom] = numbers(panel.dataset.frame);
    this.frame = shape('rect', { class: 'frame', x: left, y: top, width: right - left, height: bottom - top, fill: 'none',
      'pointer-events': 'all', tabindex: 0, role: 'application', 'aria-label': `${panel.dataset.title || 'Points'}, ` +
        `${this.items.length} points in three dimensions. Arrow keys turn the scene, zero turns it back.` });
    panel.prepend(this.frame);
    let start = null;
    panel.addEventListener('pointerdown', event => {
      if (event.button !== 0) return;
      start = { x: event.clientX, y: event.clientY, azimuth: this.azimuth, elevation: this.elevation };
      panel.setPointerCapture(event.pointerId);
      event.stopPropagation();
    });
    panel.addEventListener('pointermove', event => {
      if (!start) return;
      hideHint();
      this.turn(start.azimuth - (event.clientX - start.x) * 0.5, start.elevation + (event.clientY - start.y) * 0.5);
    });
    for (const type of ['pointerup', 'pointercancel']) panel.addEventListener(type, () => { start = null; });
    panel.addEventListener('dblclick', () => this.turn(...this.home));
    this.frame.addEventListener('keydown', event => {
      const turns = { ArrowLeft: [-5, 0], ArrowRight: [5, 0], ArrowUp: [0, 5], ArrowDown: [0, -5] };
      if (event.ctrlKey || event.altKey || event.metaKey || (!turns[event.key] && event.key !== '0')) return;
      event.preventDefault();
      if (event.key === '0') this.turn(...this.home);
      else this.turn(this.azimuth + turns[event.key][0], this.elevation + turns[event.key][1]);
      say(`seen from azimuth ${Math.round(this.azimuth)}°, elevation ${Math.round(this.elevation)}°`);
    });
  }

  reset() { this.turn(...this.home); }

  project([x, y, z]) {
    const azimuth = this.azimuth * Math.PI / 180, elevation = this.elevation * Math.PI / 180;
    const first = (x - y) / Math.SQRT2, second = (x + y - 2 * z) / Math.sqrt(6), along = (x + y + z) / Math.sqrt(3);
    const ahead = Math.cos(azimuth) * first + Math.sin(azimuth) * second;
    return { right: -Math.sin(azimuth) * first + Math.cos(azimuth) * second,
      down: Math.sin(elevation) * ahead - Math.cos(elevation) * along,
      near: Math.cos(elevation) * ahead + Math.sin(elevation) * along };
  }

  turn(azimuth, elevation) {
    this.azimuth = ((azimuth % 360) + 360) % 360;
    this.elevation = clamp(elevation, -90, 90);
    if (!this.waiting) requestAnimationFrame(() => { this.waiting = false; this.draw(); });
    this.waiting = true;
  }

  draw() {
    const { x0, y0, radius, half } = this;
    for (const item of this.items) item.seen = this.project(item.at);
    this.items.sort((a, b) => a.seen.near - b.seen.near);
    for (const { element, seen } of this.items) {
      const nearness = clamp((seen.near + 1) / 2, 0, 1), opacity = (0.4 + 0.55 * nearness).toFixed(2);
      const x = x0 + radius * seen.right, y = y0 + radius * seen.down;
      const tip = element.dataset.shape === undefined ? element.lastElementChild : element;
      if (tip === element) tip.setAttribute('d', pointShape(Number(element.dataset.shape), x, y, 2.6 + 2.6 * nearness));
      else {
        const line = element.firstElementChild;
        line.setAttribute('d', `M${x0} ${y0}L${x.toFixed(1)} ${y.toFixed(1)}`);
        line.setAttribute('stroke-opacity', opacity);
        tip.setAttribute('d', arrowHead(x0, y0, x, y, 8 + 4 * nearness));
      }
      tip.setAttribute('fill-opacity', opacity);
      element.parentNode.append(element);
    }
    const tilt = this.elevation * Math.PI / 180, up = half * Math.cos(tilt);
    const set = (name, attributes) => {
      const element = this.panel.querySelector(name);
      for (const [key, value] of Object.entries(element ? attributes : {})) element.setAttribute(key, value);
    };
    set('.ones', { d: `M${x0} ${(y0 + up).toFixed(1)}L${x0} ${(y0 - up).toFixed(1)}` });
    set('.plane', { ry: Math.abs(half * Math.sin(tilt)).toFixed(1) });
    set('.ones-label', { y: (y0 - up + 8).toFixed(1) });
    const triad = this.panel.querySelector('.triad'), [cx, cy] = numbers(triad.dataset.centre);
    [[1, 0, 0], [0, 1, 0], [0, 0, 1]].forEach((axis, i) => {
      const seen = this.project(axis), [line, head, label] = [...triad.children].slice(3 * i, 3 * i + 3);
      const x = cx + 34 * seen.right, y = cy + 34 * seen.down;
      line.setAttribute('d', `M${cx} ${cy}L${x.toFixed(1)} ${y.toFixed(1)}`);
      head.setAttribute('d', arrowHead(cx, cy, x, y, 6));
      label.setAttribute('x', (cx + 47 * seen.right).toFixed(1));
      label.setAttribute('y', (cy + 47 * seen.down + 4).toFixed(1));
    });
  }
}

// --- zoom of what is not curves: the whole picture ---

class Sheet {
  constructor(svg, boxes) {
    this.svg = svg;
    this.whole = numbers(svg.getAttribute('viewBox'));
    this.view = [...this.whole];
    svg.addEventListener('wheel', event => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const at = inside(svg, event);
      this.zoom(event.deltaY < 0 ? 1.25 : 0.8, at.x, at.y);
    }, { passive: false });
    if (!boxes) return;
    let start = null, box = null;
    svg.addEventListener('pointerdown', event => {
      if (event.button !== 0 || event.pointerType === 'touch' || event.target.closest('.entry')) return;
      start = inside(svg, event);
    });
    svg.addEventListener('pointermove', event => {
      if (!start) return;
      const at = inside(svg, event);
      if (!box && Math.hypot(at.x - start.x, at.y - start.y) > 8) {
        box = shape('rect', { class: 'selection' }, svg);
        svg.setPointerCapture(event.pointerId);
      }
      if (!box) return;
      hideHint();
      for (const [key, value] of Object.entries({ x: Math.min(at.x, start.x), y: Math.min(at.y, start.y),
        width: Math.abs(at.x - start.x), height: Math.abs(at.y - start.y) })) box.setAttribute(key, value);
    });
    const end = event => {
      if (box && event.type === 'pointerup') {
        const part = name => Number(box.getAttribute(name));
        const factor = Math.min(this.view[2] / Math.max(1, part('width')), this.view[3] / Math.max(1, part('height')));
        const size = [this.view[2] / factor, this.view[3] / factor];
        this.show(part('x') + part('width') / 2 - size[0] / 2, part('y') + part('height') / 2 - size[1] / 2, ...size);
      }
      box?.remove();
      start = box = null;
    };
    svg.addEventListener('pointerup', end);
    svg.addEventListener('pointercancel', end);
    svg.addEventListener('dblclick', event => { if (!event.target.closest('.entry')) this.reset(); });
  }

  show(x, y, width, height) {
    const [left, top, whole, tall] = this.whole, scale = clamp(width / whole, 0.02, 1);
    this.view = [clamp(x, left, left + whole * (1 - scale)), clamp(y, top, top + tall * (1 - scale)), whole * scale, tall * scale];
    this.svg.setAttribute('viewBox', this.view.map(value => +value.toFixed(3)).join(' '));
    hideHint();
  }

  zoom(factor, x = this.view[0] + this.view[2] / 2, y = this.view[1] + this.view[3] / 2) {
    const [left, top, width, height] = this.view;
    this.show(x - (x - left) / factor, y - (y - top) / factor, width / factor, height / factor);
  }

  reset() { this.show(...this.whole); }
}

// --- a figure ---

function standalone(svg) {
  const copy = svg.cloneNode(true);
  for (const element of copy.querySelectorAll('.cross, .selection, .cursor, .frame')) element.remove();
  for (const element of [copy, ...copy.querySelectorAll('*')]) {
    for (const name of ['tabindex', 'role', 'aria-label', 'aria-labelledby', 'aria-pressed', 'style']) element.removeAttribute(name);
    if (!element.dataset.hint) continue;
    shape('title', {}, element).textContent = element.dataset.hint;
    delete element.dataset.hint;
  }
  return new XMLSerializer().serializeToString(copy);
}

function save(name, text, type) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function dataTable(figure, rows) {
  const most = 500, longest = 200;
  const box = document.createElement('div');
  box.className = 'data-table';
  box.tabIndex = 0;
  box.setAttribute('role', 'region');
  box.setAttribute('aria-label', 'Data of the figure as a table');
  const table = box.appendChild(document.createElement('table'));
  rows.slice(0, most + 1).forEach((row, index) => {
    const line = table.insertRow();
    for (const field of row) {
      const cell = document.createElement(index === 0 ? 'th' : 'td');
      if (index === 0) cell.scope = 'col';
      cell.textContent = field.length > longest ? field.slice(0, longest) + `… (${field.length} characters)` : field;
      line.append(cell);
    }
  });
  if (rows.length > most + 1) {
    const note = box.appendChild(document.createElement('p'));
    note.className = 'note';
    note.textContent = `The first ${most} of ${rows.length - 1} rows; the CSV has all.`;
  }
  return box;
}

function start(figure) {
  if (figure.dataset.ready) return;
  figure.dataset.ready = '1';
  const svg = figure.querySelector('.wide > svg'), tools = figure.querySelector('.tools');
  const data = figure.querySelector('script[type="application/json"]');
  let rows;
  const csv = () => data ? JSON.parse(data.textContent) : '';
  const table = () => {
    rows ??= parseCsv(csv());
    return rows.length ? { header: rows[0], rows: rows.slice(1) } : null;
  };
  for (const element of figure.querySelectorAll('.text [title]')) {
    element.dataset.hint = element.title;
    element.removeAttribute('title');
  }
  figure.querySelector('.text')?.addEventListener('pointermove', event =>
    showHint(event.target.closest('[data-hint]')?.dataset.hint, event.clientX, event.clientY));
  figure.querySelector('.text')?.addEventListener('pointerleave', hideHint);

  const parts = [];
  if (svg) {
    // Hints are <title> elements in the file, so that they also work without a script; here they are shown at once.
    for (const title of svg.querySelectorAll('* > title')) {
      title.parentNode.dataset.hint = title.textContent;
      title.remove();
    }
    svg.setAttribute('role', 'group');
    const panels = [...svg.querySelectorAll('.panel[data-kind="xy"]')];
    const titles = new Set(panels.map(panel => panel.dataset.title));
    const curves = panels.length && titles.size === panels.length && table() ? curvesOf(rows) : null;
    const plots = curves ? panels.map(panel => new Plot(panel, svg, curves.get(panel.dataset.title) ?? new Map())) : [];
    const scenes = [...svg.querySelectorAll('.panel[data-kind="3d"]')].map(panel => new Scene(panel, svg));
    for (const group of svg.querySelectorAll('.cells, .matrix')) new Cells(group, svg, table);
    parts.push(...(plots.length ? plots : [new Sheet(svg, !scenes.length)]), ...scenes);
    svg.addEventListener('pointermove', event => {
      if (event.target.closest('[data-kind="xy"]') && plots.length) return;
      if (event.target.closest('.matrix, [data-where]')) return;
      if (!event.buttons) showHint(event.target.closest('[data-hint]')?.dataset.hint, event.clientX, event.clientY);
    });
    svg.addEventListener('pointerleave', hideHint);
  }
  startLegend(figure);

  // The zoom comes first among the tools, which are in the file.
  if (parts.length) {
    const zooms = document.createDocumentFragment();
    const all = (name, ...values) => { for (const part of parts) part[name]?.(...values); };
    button('Zoom in', zooms, () => all('zoom', 1.5));
    button('Zoom out', zooms, () => all('zoom', 1 / 1.5));
    button('Reset view', zooms, () => all('reset'));
    tools.prepend(zooms);
  }
  const toggle = tools.querySelector('[data-kind="table"]');
  toggle?.addEventListener('click', () => {
    const open = toggle.getAttribute('aria-expanded') === 'true';
    toggle.setAttribute('aria-expanded', String(!open));
    if (open) figure.querySelector('.data-table').remove();
    else if (table()) tools.after(dataTable(figure, rows));
  });
  tools.querySelector('[data-kind="svg"]')?.addEventListener('click', () =>
    save(figure.id + '.svg', standalone(svg), 'image/svg+xml'));
  tools.querySelector('[data-kind="csv"]')?.addEventListener('click', () => save(figure.id + '.csv', csv(), 'text/csv'));
}

const figures = document.querySelectorAll('figure');
const near = new IntersectionObserver(entries => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    near.unobserve(entry.target);
    start(entry.target);
  }
}, { rootMargin: '600px' });
for (const figure of figures) {
  near.observe(figure);
  figure.addEventListener('focusin', () => start(figure), { once: true });
}

// --- light and dark ---

const theme = document.getElementById('theme');
const themes = ['auto', 'light', 'dark'];
function setTheme(name) {
  if (name === 'auto') delete root.dataset.theme;
  else root.dataset.theme = name;
  theme.textContent = 'Theme: ' + name;
  theme.setAttribute('aria-label', `Theme: ${name}; press for the next of ${themes.join(', ')}`);
  theme.value = name;
}
let remembered = null;
try { remembered = localStorage.getItem('normscope-theme'); } catch { /* not allowed here: auto */ }
setTheme(themes.includes(remembered) ? remembered : 'auto');
theme.addEventListener('click', () => {
  setTheme(themes[(themes.indexOf(theme.value) + 1) % themes.length]);
  try { localStorage.setItem('normscope-theme', theme.value); } catch { /* then not */ }
});
addEventListener('keydown', event => { if (event.key === 'Escape') hideHint(); });
addEventListener('scroll', hideHint, { passive: true });
})();
