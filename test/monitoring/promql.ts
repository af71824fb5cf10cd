/**
 * Checks PromQL expressions against the exposed metrics: the expression must parse, and each metric and each
 * label in a matcher, a grouping or a vector match must exist. Also determines the labels of a result.
 */
import type { SyntaxNode } from '@lezer/common';
import { parser } from '@prometheus-io/lezer-promql';

/**
 * The labels of a metric with the values of each label. Undefined if the values can't be known in advance.
 */
export type LabelsOf = ReadonlyMap<string, ReadonlySet<string> | undefined>;
/** Labels by the name of a time series, including `_bucket`, `_sum` and `_count` of a histogram. */
export type Exposed = ReadonlyMap<string, LabelsOf>;

/**
 * Reads the text format of a scrape. The labels include `job` and `instance`, which Prometheus adds to each
 * time series.
 */
export function readExposition(text: string): Map<string, Map<string, Set<string> | undefined>> {
  const exposed = new Map<string, Map<string, Set<string> | undefined>>();
  for (const line of text.split('\n')) {
    const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? \S+$/.exec(line);
    if (match === null) continue;
    const [, name = '', labels = ''] = match;
    let known = exposed.get(name);
    if (known === undefined) {
      known = new Map([
        ['job', undefined],
        ['instance', undefined],
      ]);
      exposed.set(name, known);
    }
    for (const [, label = '', value = ''] of labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
      const values = known.get(label) ?? new Set();
      known.set(label, values.add(value));
    }
  }
  return exposed;
}

/** Thrown if the expression does not parse, or refers to a metric or label that does not exist. */
export class ExpressionError extends Error {}

/**
 * @returns the labels of the result, or undefined for a scalar.
 * @throws ExpressionError
 */
export function check(expression: string, exposed: Exposed): ReadonlySet<string> | undefined {
  return new Checker(expression, exposed).result();
}

const COMPARISONS_AND_ARITHMETIC = new Set([
  'Add',
  'Sub',
  'Mul',
  'Div',
  'Mod',
  'Pow',
  'Eql',
  'Neq',
  'Gtr',
  'Lss',
  'Gte',
  'Lte',
]);
/** PromQL functions that keep the labels of their vector. */
const KEEPING = new Set([
  'rate',
  'increase',
  'abs',
  'sqrt',
  'clamp_min',
  'clamp_max',
  'max_over_time',
  'predict_linear',
]);

class Checker {
  constructor(
    private readonly text: string,
    private readonly exposed: Exposed,
  ) {}

  result(): ReadonlySet<string> | undefined {
    const tree = parser.parse(this.text);
    tree.iterate({
      enter: ({ type, from }) => {
        if (type.isError) this.#fail(`does not parse at ${from}`);
      },
    });
    const top = tree.topNode.firstChild;
    if (top === null) this.#fail('is empty');
    return this.#labels(top!);
  }

  #fail(what: string): never {
    throw new ExpressionError(`${this.text}\n  ${what}`);
  }

  #of(node: SyntaxNode): string {
    return this.text.slice(node.from, node.to);
  }

  #labels(node: SyntaxNode): ReadonlySet<string> | undefined {
    switch (node.name) {
      case 'NumberDurationLiteral':
        return undefined;
      case 'ParenExpr':
        return this.#labels(node.firstChild!);
      case 'VectorSelector':
        return this.#selector(node);
      case 'MatrixSelector':
      case 'OffsetExpr':
        return this.#labels(node.firstChild!);
      case 'AggregateExpr':
        return this.#aggregate(node);
      case 'FunctionCall':
        return this.#call(node);
      case 'BinaryExpr':
        return this.#binary(node);
      default:
        return this.#fail(`has a ${node.name}, which this check does not know`);
    }
  }

  #selector(node: SyntaxNode): ReadonlySet<string> {
    const name = this.#of(node.getChild('Identifier')!);
    const labels = this.exposed.get(name);
    if (labels === undefined) this.#fail(`there is no metric ${name}`);
    for (const matcher of node.getChild('LabelMatchers')?.getChildren('UnquotedLabelMatcher') ?? []) {
      const label = this.#of(matcher.getChild('LabelName')!);
      if (!labels!.has(label)) this.#fail(`${name} has no label ${label}`);
      const values = labels!.get(label);
      if (values === undefined) continue;
      const operator = this.#of(matcher.getChild('MatchOp')!);
      const wanted = JSON.parse(this.#of(matcher.getChild('StringLiteral')!)) as string;
      const pattern = new RegExp(`^(?:${wanted})$`);
      if (operator === '=' && !values.has(wanted)) this.#fail(`${name} has no ${label} ${wanted}`);
      if (operator === '=~' && ![...values].some((value) => pattern.test(value)))
        this.#fail(`${name} has no ${label} like ${wanted}`);
    }
    return new Set(labels!.keys());
  }

  #aggregate(node: SyntaxNode): ReadonlySet<string> {
    const operands = children(node.getChild('FunctionCallBody')!);
    const operation = this.#of(node.getChild('AggregateOp')!);
    const inner = this.#vector(operands.at(-1)!);
    // The operators topk and bottomk select time series and keep their labels.
    if (operation === 'topk' || operation === 'bottomk') return inner;
    const modifier = node.getChild('AggregateModifier');
    if (modifier === null) return new Set();
    if (modifier.getChild('By') === null)
      this.#fail('aggregates without `by`, which this check does not know');
    return this.#grouping(modifier, [inner]);
  }

  #call(node: SyntaxNode): ReadonlySet<string> | undefined {
    const name = this.#of(node.getChild('FunctionIdentifier')!);
    const parameters = children(node.getChild('FunctionCallBody')!);
    if (name === 'vector') return new Set();
    // The result of `absent()` has no labels, but the metric in its argument must exist all the same.
    if (name === 'absent') {
      this.#vector(parameters[0]!);
      return new Set();
    }
    if (name === 'histogram_quantile') {
      const inner = new Set(this.#vector(parameters[1]!));
      if (!inner.delete('le')) this.#fail('asks for a quantile of what has no label le');
      return inner;
    }
    if (!KEEPING.has(name)) this.#fail(`calls ${name}, which this check does not know`);
    return this.#vector(parameters[0]!);
  }

  #binary(node: SyntaxNode): ReadonlySet<string> | undefined {
    const [leftNode, ...between] = children(node);
    const left = this.#labels(leftNode!);
    const right = this.#labels(between.at(-1)!);
    if (left === undefined || right === undefined) return left ?? right;
    const operator = between[0]!.name;
    if (operator === 'Or') return new Set([...left, ...right]);
    const modifier = node.getChild('MatchingModifierClause');
    if (modifier === null) {
      // Time series of both sides of an operator match only if they have the same labels.
      if (!sameMembers(left, right)) {
        this.#fail(`matches {${[...left].sort()}} with {${[...right].sort()}}: no series has both`);
      }
      return left;
    }
    if (!COMPARISONS_AND_ARITHMETIC.has(operator))
      this.#fail(`has ${operator} with a match that this check does not know`);
    const on = this.#grouping(modifier, [left, right]);
    return modifier.getChild('GroupLeft') === null ? on : left;
  }

  #vector(node: SyntaxNode): ReadonlySet<string> {
    return this.#labels(node) ?? this.#fail(`${this.#of(node)} is no vector`);
  }

  /** Returns the labels in a `by` or `on`, which the vectors on all sides must have. */
  #grouping(modifier: SyntaxNode, sides: readonly ReadonlySet<string>[]): Set<string> {
    const names = (modifier.getChild('GroupingLabels')?.getChildren('LabelName') ?? []).map((label) =>
      this.#of(label),
    );
    for (const name of names) {
      if (!sides.every((side) => side.has(name))) this.#fail(`groups by ${name}, which is no label there`);
    }
    return new Set(names);
  }
}

function children(node: SyntaxNode): SyntaxNode[] {
  const all: SyntaxNode[] = [];
  for (let child = node.firstChild; child !== null; child = child.nextSibling) all.push(child);
  return all;
}

const sameMembers = (a: ReadonlySet<string>, b: ReadonlySet<string>): boolean =>
  a.size === b.size && [...a].every((each) => b.has(each));
