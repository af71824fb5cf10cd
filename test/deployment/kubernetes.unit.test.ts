/** Checks the chart in deploy/helm and its rendered manifests as far as possible without a cluster. */
import { spawnSync } from 'node:child_process';
import { basename, dirname } from 'node:path';
import { Ajv } from 'ajv';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { readConfig } from '../../src/app/config.js';
import { Environment } from '../../src/app/settings.js';
import { signerKeyOf, signerOf } from '../../src/domain/publicLog/notes.js';
import { ROOT } from '../support/root.js';
import { CHART, helm, type Manifest, type Pod, rendered } from './chart.js';
import { compose, read, secrets } from './compose.js';

/** Settings that the chart sets itself or from the Secret. */
const OWN = ['ROLES', 'HOST', 'METRICS_HOST', 'PORT', 'METRICS_PORT', 'POSITION_FILE', 'LOG_COPY_DIR'];
/** Settings that have no use in a pod. More pods are used in place of FRONT_ENDS. */
const UNUSED = ['SPINDLE_URL', 'DATA_DIR', 'FRONT_ENDS'];
const STOP_SECONDS = 10;
/** Values that the Secret may contain in addition to the secrets of Compose. */
const SECRET_VALUES: Record<string, string> = {
  REDIS_URL: 'redis://a:1',
  DATABASE_URL: 'postgres://a:1/b',
  DATABASE_DIRECT_URL: 'postgres://a:1/b',
  SMTP_URL: 'smtp://a:1',
  METRICS_TOKEN: 'sixteen letters!',
  SEEDS_KEY: Buffer.alloc(32, 7).toString('base64'),
  LOG_KEY: signerKeyOf(signerOf('spindle.example/log', 'log', Buffer.alloc(32, 7))),
};

const manifests = rendered();
const pods = manifests.flatMap(({ metadata, spec }) =>
  spec.template === undefined ? [] : [[metadata.name, spec.template] as const],
);
const chart = parse(read(`${CHART}/Chart.yaml`)) as { version: string; appVersion: string };
const schema = JSON.parse(read(`${CHART}/values.schema.json`));
const missing = helm === undefined ? ' (skipped: no Helm here)' : '';

describe.skipIf(helm === undefined)(`the Helm manifests${missing}`, () => {
  test('Helm finds no fault in the chart', () => {
    const { status, stdout } = spawnSync(helm!, ['lint', '--strict', CHART], { cwd: ROOT, encoding: 'utf8' });
    expect(status, stdout).toBe(0);
  });

  test('the chart starts the image with the same commands as the Dockerfile and Compose, in the same version', () => {
    const { version } = JSON.parse(read('package.json')) as { version: string };
    expect(chart.appVersion).toBe(version);
    const [, program] = /^CMD \["node", "(.*)"\]$/m.exec(read('Dockerfile'))!;
    const [, uid] = /^(\d+):\d+$/.exec(compose.services.http!.user)!;
    for (const [, { spec }] of pods) {
      const [container] = spec.containers;
      expect(container.image).toBe(`spindle:${version}`);
      if (container.command !== undefined) expect(container.command).toEqual(['node', program, '--migrate']);
      expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: Number(uid) });
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      expect(container.resources).toMatchObject({
        requests: { cpu: expect.anything() },
        limits: { memory: expect.anything() },
      });
    }
    expect(read('src/app/program/runProgram.ts')).toContain("'--migrate'");
  });

  test.each(pods)('the pod %s gets only settings that the service accepts', (_name, { spec }) => {
    const [{ env }] = spec.containers;
    const given = env.map(({ name, value, valueFrom }) => {
      if (valueFrom === undefined) return [name, value!];
      expect(valueFrom.secretKeyRef).toMatchObject({ name: 'spindle', key: name });
      return [name, secrets[name] ?? SECRET_VALUES[name]!];
    });
    for (const [name] of given) expect(Object.keys(Environment.properties)).toContain(name);
    const config = readConfig(Object.fromEntries(given));
    expect([config.HOST, config.METRICS_HOST]).toEqual(['0.0.0.0', '0.0.0.0']);
    expect([config.REDIS_URL, config.DATABASE_URL, config.OPERATOR_API_KEY].includes(undefined)).toBe(false);
    // All data is stored outside the pod, so nothing is written to its read-only file system.
    expect(config.WEBHOOK_SECRETS_KEY).toBeDefined();
  });

  test('the chart uses existing ports and paths, and allows enough time to stop', () => {
    const config = readConfig({});
    const numbers: Record<string, number> = { http: config.PORT, metrics: config.METRICS_PORT };
    const routes: Record<string, string> = {
      http: read('src/api/server/serverRoutes.ts'),
      metrics: read('src/app/metrics/metricsServer.ts'),
    };
    const deployed = pods.filter(([name]) => !name.endsWith('migration'));
    expect(deployed.length).toBe(2);
    for (const [, { spec }] of deployed) {
      const [{ ports = [], lifecycle, startupProbe, livenessProbe, readinessProbe }] = spec.containers;
      for (const { name, containerPort } of ports) expect(containerPort).toBe(numbers[name]);
      for (const probe of [startupProbe, livenessProbe, readinessProbe]) {
        const { path, port } = probe!.httpGet;
        expect(ports.map(({ name }) => name)).toContain(port);
        expect(routes[port]).toContain(`'${path}'`);
      }
      const [program, rest] = lifecycle!.preStop.exec.command;
      expect(program).toBe('sleep');
      expect(spec.terminationGracePeriodSeconds).toBeGreaterThan(Number(rest) + STOP_SECONDS);
    }
    const beside = STOP_SECONDS - config.SHUTDOWN_GRACE_S;
    expect(read('src/app/program/runProgram.ts')).toContain(`STOP_TIMEOUT_MS = ${beside}000`);
  });

  test("the chart's selectors match the pods of their role, but never those of the migration", () => {
    const selects = ({ spec }: Manifest, { metadata }: Pod): boolean =>
      Object.entries(spec.selector?.matchLabels ?? spec.selector ?? { none: '' }).every(
        ([label, value]) => metadata.labels[label] === value,
      );
    const chosen = Object.fromEntries(
      manifests
        .filter(({ spec }) => spec.selector !== undefined)
        .map((each) => [
          `${each.kind} ${each.metadata.name}`,
          pods.filter(([, pod]) => selects(each, pod)).map(([name]) => name),
        ]),
    );
    const [front, worker] = ['spindle-front-end', 'spindle-worker'];
    expect(chosen).toEqual({
      [`Deployment ${front}`]: [front],
      [`Deployment ${worker}`]: [worker],
      [`PodDisruptionBudget ${front}`]: [front],
      [`PodDisruptionBudget ${worker}`]: [worker],
      'Service spindle': [front],
      'Service spindle-metrics': [front, worker],
    });
    const scaled = manifests.find(({ kind }) => kind === 'HorizontalPodAutoscaler')!.spec.scaleTargetRef!;
    expect(scaled).toMatchObject({ kind: 'Deployment', name: front });
  });

  test('the chart includes the alert rules of grafana/ for the job that its ServiceMonitor names', () => {
    const monitored = rendered('--set', 'monitoring.serviceMonitor=true,monitoring.prometheusRule=true');
    const specOf = (kind: string) => monitored.find((each) => each.kind === kind)!.spec;
    const rules = read('grafana/rules/spindle.yml');
    expect(specOf('PrometheusRule')).toEqual(parse(rules));
    expect(rules).toContain('up{job="spindle"}');
    expect(specOf('ServiceMonitor')).toMatchObject({ jobLabel: 'app.kubernetes.io/name' });
    for (const [name, { metadata }] of pods)
      if (!name.endsWith('migration')) expect(metadata.labels['app.kubernetes.io/name']).toBe('spindle');
  });

  test('the chart can pin the image by its digest, and allows as much time to stop as SHUTDOWN_GRACE_S needs', () => {
    const digest = `sha256:${'0a'.repeat(32)}`;
    const options = ['--set', `image.digest=${digest}`, '--set-string', 'settings.SHUTDOWN_GRACE_S=60'];
    const found = rendered(...options).flatMap(({ spec }) => spec.template ?? []);
    expect(found.length).toBe(3);
    for (const { spec } of found) expect(spec.containers[0].image).toBe(`spindle@${digest}`);
    for (const { spec } of found.slice(0, 2))
      expect(spec.terminationGracePeriodSeconds).toBeGreaterThan(65 + 5);
  });

  test('the chart passes variables, annotations and placement to the pods of both roles', () => {
    const placed = {
      annotations: { owner: 'games' },
      podAnnotations: { 'example.com/scan': 'yes' },
      affinity: {
        nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } },
      },
      nodeSelector: { pool: 'spindle' },
      tolerations: [{ key: 'spindle', operator: 'Exists' }],
      topologySpreadConstraints: [
        { maxSkew: 2, topologyKey: 'rack', whenUnsatisfiable: 'DoNotSchedule' },
        {
          maxSkew: 1,
          topologyKey: 'zone',
          whenUnsatisfiable: 'ScheduleAnyway',
          labelSelector: { matchLabels: { a: 'b' } },
        },
      ],
    };
    const values = { extraEnv: [{ name: 'TZ', value: 'UTC' }], frontEnd: placed, worker: placed };
    const deployments = rendered(
      '--set-json',
      `frontEnd=${JSON.stringify(placed)}`,
      '--set-json',
      `worker=${JSON.stringify(placed)}`,
      '--set-json',
      `extraEnv=${JSON.stringify(values.extraEnv)}`,
    ).filter(({ kind }) => kind === 'Deployment');
    expect(deployments.length).toBe(2);
    for (const { metadata, spec } of deployments) {
      const { annotations, podAnnotations, topologySpreadConstraints: spread, ...asGiven } = placed;
      expect(metadata).toMatchObject({ annotations });
      expect(spec.template!.metadata).toMatchObject({ annotations: podAnnotations });
      expect(spec.template!.spec).toMatchObject(asGiven);
      expect(spec.template!.spec.containers[0].env).toContainEqual(values.extraEnv[0]);
      const own = { labelSelector: { matchLabels: spec.selector!.matchLabels } };
      expect(spec.template!.spec).toMatchObject({
        topologySpreadConstraints: [{ ...spread[0], ...own }, spread[1]],
      });
    }
  });

  test("the chart mounts the workers' volume claim and the stores' certificates if they are named", () => {
    const worker = rendered('--set', 'worker.positionClaim=claim,tlsSecret=tls').find(
      ({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'spindle-worker',
    )!;
    const { volumes, containers } = worker.spec.template!.spec;
    expect(volumes.map(({ name }) => name)).toEqual(['tmp', 'tls', 'position']);
    expect(containers[0].volumeMounts.map(({ mountPath }) => mountPath)).toEqual([
      ...['/tmp', '/etc/spindle/tls', '/spindle/position'],
    ]);
  });
});

describe('values of the chart', () => {
  test("the chart keeps the position file at the same path as Compose, in a folder owned by the image's user", () => {
    const { environment, volumes, user } = compose.services.worker!;
    const path = environment!.POSITION_FILE!;
    const folder = dirname(path);
    expect(volumes).toEqual([`position:${folder}`]);
    expect(compose.services.http!.environment).not.toHaveProperty('POSITION_FILE');
    const deployments = read(`${CHART}/templates/deployments.yaml`);
    expect(deployments).toContain(`- name: POSITION_FILE\n              value: ${path}\n`);
    expect(deployments).toContain(`mountPath: ${folder}\n`);
    expect(read('Dockerfile')).toContain(`WORKDIR ${dirname(folder)}\n`);
    expect(read('Dockerfile')).toContain(
      `RUN mkdir ${basename(folder)} && chown ${user} ${basename(folder)}\n`,
    );
  });

  test('the chart sets every setting of the service: from the Secret, from its values, or to a fixed value', () => {
    const [, helpers] = /define "spindle.environment"(.*?)define "/s.exec(
      read(`${CHART}/templates/_helpers.tpl`),
    )!;
    const fromSecret = [...helpers!.matchAll(/range list (.*) \}\}/g)].flatMap(([, names]) =>
      names!.split(' ').map((name) => name.replaceAll('"', '')),
    );
    for (const name of fromSecret) expect(read(`${CHART}/values.yaml`)).toContain(name);
    const own = new Set([...OWN, ...UNUSED, ...fromSecret]);
    const open = Object.keys(Environment.properties).filter((name) => !own.has(name));
    expect([...schema.properties.settings.propertyNames.enum].sort()).toEqual(open.sort());
  });

  test("the chart's schema accepts its default values, and refuses unknown values", () => {
    const validate = new Ajv({ strict: false, allErrors: true }).compile(schema);
    const values = () => parse(read(`${CHART}/values.yaml`));
    expect(validate(values()), JSON.stringify(validate.errors)).toBe(true);
    expect(validate({ ...values(), replicas: 3 })).toBe(false);
    expect(validate({ ...values(), image: { repository: 'spindle', digest: 'latest' } })).toBe(false);
    expect(validate({ ...values(), networkPolicy: { storePorts: ['redis'] } })).toBe(false);
    expect(validate({ ...values(), settings: { ACKS: 'ledger' } })).toBe(false);
    // Helm would render this number as 1e+06.
    expect(validate({ ...values(), settings: { CONNECTIONS_MAX: 1_000_000 } })).toBe(false);
  });
});
