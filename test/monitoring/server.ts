/**
 * The Prometheus of the alert test, with the project's configuration and rules except for the targets and a
 * faster clock.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import type { Cleanup } from '../support/cleanup.js';
import { ROOT } from '../support/root.js';
import { endProcess } from '../support/serverProcess.js';
import { until } from '../support/wait.js';
import { RULES } from './files.js';
import { type Programs, promtool } from './prometheus.js';

const SCRAPE_MS = 600;
const READY_WITHIN_MS = 20_000;
const UNIT_MS: Readonly<Record<string, number>> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Divides every duration of a rule file, namely windows (`[5m]`) and `for`. Thresholds stay unchanged. */
function divideDurations(rules: string, factor: number): string {
  const divided = (count: string, unit: string): string =>
    `${Math.round((Number(count) * UNIT_MS[unit]!) / factor)}ms`;
  return rules
    .replace(/\[(\d+)([smhd])\]/g, (_, count: string, unit: string) => `[${divided(count, unit)}]`)
    .replace(
      /^(\s+for: )(\d+)([smhd])$/gm,
      (_, key: string, count: string, unit: string) => key + divided(count, unit),
    );
}

export class Prometheus {
  readonly #base: string;
  #firing: ReadonlySet<string> = new Set();

  private constructor(port: number) {
    this.#base = `http://127.0.0.1:${port}/api/v1`;
  }

  /** @param factor divides every duration of the rules */
  static async start(
    programs: Programs,
    {
      folder,
      port,
      targets,
      factor,
      environment,
    }: {
      folder: string;
      port: number;
      targets: readonly string[];
      factor: number;
      environment: NodeJS.ProcessEnv;
    },
    cleanup: Cleanup,
  ): Promise<Prometheus> {
    const home = join(folder, 'prometheus');
    await mkdir(join(home, 'rules'), { recursive: true });
    const config = parse(await readFile(join(ROOT, 'grafana', 'prometheus.yml'), 'utf8'));
    config.global = {
      scrape_interval: `${SCRAPE_MS}ms`,
      evaluation_interval: `${SCRAPE_MS}ms`,
      scrape_timeout: `${SCRAPE_MS}ms`,
    };
    const [job] = config.scrape_configs;
    delete job.dns_sd_configs;
    job.static_configs = [{ targets }];
    const file = join(home, 'prometheus.yml');
    await writeFile(file, stringify(config));
    const rules = await readFile(join(ROOT, RULES), 'utf8');
    await writeFile(join(home, 'rules', 'spindle.yml'), divideDurations(rules, factor));
    await promtool(programs, home, 'check', 'config', file);
    const child: ChildProcess = spawn(
      programs.prometheus,
      [
        `--config.file=${file}`,
        `--storage.tsdb.path=${join(home, 'data')}`,
        `--web.listen-address=127.0.0.1:${port}`,
        '--log.level=warn',
      ],
      { cwd: home, env: environment, stdio: ['ignore', 'inherit', 'inherit'] },
    );
    cleanup.add(() => endProcess(child));
    const prometheus = new Prometheus(port);
    await until(() => prometheus.#isReady(), 'Prometheus is ready', READY_WITHIN_MS, 100);
    return prometheus;
  }

  /**
   * Runs an instant query and returns the number of time series with a numeric value.
   * @throws Error if Prometheus refuses the query
   */
  async series(expr: string): Promise<number> {
    const { result, resultType } = (await this.#get(`query?query=${encodeURIComponent(expr)}`)) as {
      resultType: string;
      result: { value: [number, string] }[] | [number, string];
    };
    if (resultType === 'scalar') return 1;
    return (result as { value: [number, string] }[]).filter(({ value }) => value[1] !== 'NaN').length;
  }

  /** Queries which alerts are firing. */
  async look(): Promise<void> {
    const { alerts } = (await this.#get('alerts')) as {
      alerts: { state: string; labels: { alertname: string } }[];
    };
    const firing = new Set(
      alerts.filter(({ state }) => state === 'firing').map(({ labels }) => labels.alertname),
    );
    this.#firing = firing;
  }

  /** The alerts that fired at the last query. */
  get firing(): ReadonlySet<string> {
    return this.#firing;
  }

  /** Returns the newest scrape of each target. */
  async targets(): Promise<{ scrapeUrl: string; health: string; lastScrapeDuration: number }[]> {
    const { activeTargets } = (await this.#get('targets')) as {
      activeTargets: { scrapeUrl: string; health: string; lastScrapeDuration: number }[];
    };
    return activeTargets;
  }

  async #isReady(): Promise<boolean> {
    return this.#get('status/runtimeinfo').then(
      () => true,
      () => false,
    );
  }

  async #get(path: string): Promise<unknown> {
    const response = await fetch(`${this.#base}/${path}`);
    const { status, data, error } = (await response.json()) as {
      status: string;
      data: unknown;
      error?: string;
    };
    if (status !== 'success') throw new Error(`Prometheus refuses ${decodeURIComponent(path)}: ${error}`);
    return data;
  }
}
