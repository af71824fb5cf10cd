/** Reads the contents of grafana/ and docs/runbook.md for the checks of dashboards and alerts. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

export interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly fieldConfig?: { readonly defaults: { readonly unit?: string } };
  readonly datasource?: { readonly uid: string };
  readonly targets?: readonly {
    readonly refId: string;
    readonly expr: string;
    readonly legendFormat: string;
  }[];
}

export interface Dashboard {
  readonly uid: string;
  readonly title: string;
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly definition: string }[] };
  readonly annotations: { readonly list: readonly { readonly name: string; readonly expr: string }[] };
}

export interface Rule {
  readonly record?: string;
  readonly alert?: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface RuleCase {
  readonly name: string;
  readonly alert_rule_test?: readonly {
    readonly eval_time: string;
    readonly alertname: string;
    readonly exp_alerts: readonly unknown[];
  }[];
}

export interface Monitoring {
  readonly dashboards: readonly Dashboard[];
  readonly rules: readonly Rule[];
  readonly cases: readonly RuleCase[];
  /** Headings of the alerts in the runbook. */
  readonly runbook: readonly string[];
}

export const RULES = join('grafana', 'rules', 'spindle.yml');
export const CASES = ['rules.yml', 'days.yml'].map((name) => join('test', 'monitoring', name));

export function readMonitoring(root: string): Monitoring {
  const text = (...path: string[]): string => readFileSync(join(root, ...path), 'utf8');
  const folder = join('grafana', 'dashboards');
  const { groups } = parse(text(RULES)) as { groups: { rules: Rule[] }[] };
  return {
    dashboards: readdirSync(join(root, folder))
      .sort()
      .map((name) => JSON.parse(text(folder, name)) as Dashboard),
    rules: groups.flatMap((group) => group.rules),
    cases: CASES.flatMap((file) => (parse(text(file)) as { tests: RuleCase[] }).tests),
    runbook: [...text('docs', 'runbook.md').matchAll(/^## (Spindle\w+)$/gm)].map((match) => match[1]!),
  };
}

/** A dashboard expression with Grafana's variables filled in, as Prometheus gets it. */
export interface Asked {
  readonly where: string;
  readonly expr: string;
  readonly legend: string;
}

/** @param variables values by name, without the dollar sign */
export function expressionsOf(dashboard: Dashboard, variables: Readonly<Record<string, string>>): Asked[] {
  const fill = (text: string): string =>
    text.replace(/\$(\w+)/g, (whole, name: string) => variables[name] ?? whole);
  const ofPanels = dashboard.panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr, legendFormat }) => ({
      where: `${dashboard.title}, «${title}»`,
      expr: fill(expr),
      legend: legendFormat,
    })),
  );
  const ofAnnotations = dashboard.annotations.list.map(({ name, expr }) => ({
    where: `${dashboard.title}, annotation «${name}»`,
    expr: fill(expr),
    legend: '',
  }));
  return [...ofPanels, ...ofAnnotations];
}
