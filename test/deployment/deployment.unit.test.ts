/**
 * Checks Dockerfile and docker-compose.yml as far as possible without Docker. `npm run test:image` builds and
 * runs the image.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DCLinter } from 'dclint';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { readConfig } from '../../src/app/config.js';
import { Environment } from '../../src/app/settings.js';
import { dockerfile } from '../support/dockerfile.js';
import { ROOT } from '../support/root.js';
import { compose, read, secrets, text } from './compose.js';

const { services } = compose;
const each = Object.entries(services);
const prometheus = parse(read('grafana/prometheus.yml')) as {
  rule_files: string[];
  scrape_configs: { dns_sd_configs: { names: string[]; port: number }[] }[];
};
/** Returns the configuration of the service in one role. */
const settings = (role: 'http' | 'worker') => readConfig(services[role]!.environment);
const seconds = (duration: string): number => Number(/^(\d+)s$/.exec(duration)![1]);
describe('docker-compose.yml', () => {
  test('docker-compose.yml follows the Compose Specification and good practice', () => {
    const order = {
      'service-keys-order': 0,
      'services-alphabetical-order': 0,
      'top-level-properties-order': 0,
    };
    const linter = new DCLinter({ rules: order, quiet: true, debug: false, exclude: [] });
    const found = linter.lintFiles([join(ROOT, 'docker-compose.yml')], false);
    expect(found.length).toBe(1);
    expect(found[0]!.messages).toEqual([]);
  });

  const hasCompose = spawnSync('docker', ['compose', 'version']).status === 0;
  test.skipIf(!hasCompose)('docker compose accepts docker-compose.yml', () => {
    const command = ['compose', '--project-directory', ROOT, 'config', '--quiet'];
    const { status, stderr } = spawnSync('docker', command, { env: { ...process.env, ...secrets } });
    expect([status, stderr.toString()]).toEqual([0, '']);
  });

  test('docker-compose.yml requires each secret, and .env.example lists them all without values', () => {
    const isOptional = (variable: string): boolean =>
      /^(RUNBOOK_URL:-|FRONT_ENDS:-1|[A-Z]+_IMAGE:-.+)$/.test(variable);
    const asked = [...text.matchAll(/\$\{([^}]*)\}/g)]
      .map(([, variable]) => variable!)
      .filter((variable) => !isOptional(variable));
    expect(new Set(asked.map((variable) => variable.split(':')[0]!))).toEqual(new Set(Object.keys(secrets)));
    // `:?` makes Compose refuse to start without a value.
    for (const variable of asked) expect(variable).toMatch(/^[A-Z_]+:\?./);
    for (const [, , given] of read('.env.example').matchAll(/^([A-Z_]+)=(.*)$/gm)) expect(given).toBe('');
    expect(read('.gitignore').split('\n')).toContain('.env');
  });

  test.each([
    ['docker-compose.yml', '.env'],
    ['deploy/separate-stores.yml', '/etc/spindle.env'],
  ])(
    '%s passes every setting of %s to both roles, except those that the containers need as they are',
    (file, env) => {
      const { services: found } = parse(read(file), { merge: true }) as typeof compose;
      const fixed = [
        'HOST',
        'PORT',
        'METRICS_HOST',
        'METRICS_PORT',
        'ROLES',
        'POSITION_FILE',
        'LOG_COPY_DIR',
      ];
      for (const role of ['http', 'worker'] as const) {
        const { env_file, environment } = found[role] as {
          env_file?: string[];
          environment: Record<string, string>;
        };
        expect(env_file).toEqual([env]);
        // A value under `environment` wins over that of the file.
        const own = Object.entries(environment).filter(
          ([name, value]) => !fixed.includes(name) && !value.includes('${'),
        );
        expect(own.map(([name]) => name).filter((name) => name !== 'FRONT_ENDS')).toEqual([]);
      }
    },
  );

  test('docker-compose.yml takes each image from a variable in .env.example, so a digest can pin it', () => {
    const images = [...text.matchAll(/image: \$\{([A-Z]+_IMAGE):-\S+\}/g)].map(([, variable]) => variable!);
    expect(images.length).toBe([...text.matchAll(/^ +image: /gm)].length);
    for (const variable of images)
      expect(read('.env.example')).toMatch(new RegExp(`^# ${variable}=\\S+@sha256:`, 'm'));
  });

  test.each(each)('the Compose service %s runs with minimal rights and resources', (_name, service) => {
    const [, uid] = /^(\d+):\d+$/.exec(service.user)!;
    expect(Number(uid)).toBeGreaterThan(0);
    expect(service).toMatchObject({
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      restart: 'unless-stopped',
    });
    expect(Object.keys(service.deploy.resources.limits).sort()).toEqual(['cpus', 'memory', 'pids']);
    expect(Object.keys(service.logging.options).sort()).toEqual(['max-file', 'max-size']);
    expect(service.healthcheck.test[0]).toMatch(/^CMD/);
    expect(service.image).toMatch(/:v?\d+\.\d+(\.\d+)?(-|$)/);
    expect(service.stop_grace_period).toMatch(/^\d+s$/);
    for (const address of service.ports ?? []) expect(address).toMatch(/^127\.0\.0\.1:/);
    for (const { condition } of Object.values(service.depends_on ?? {}))
      expect(condition).toBe('service_healthy');
  });

  test('docker-compose.yml mounts and names only things that exist', () => {
    for (const [, { volumes = [], networks, depends_on = {} }] of each) {
      for (const volume of volumes) {
        const [source] = volume.split(':') as [string];
        if (source.startsWith('.')) {
          expect(existsSync(join(ROOT, source)), source).toBe(true);
          expect(volume).toMatch(/:ro$/);
        } else expect(Object.keys(compose.volumes)).toContain(source);
      }
      for (const network of networks) expect(Object.keys(compose.networks)).toContain(network);
      for (const name of Object.keys(depends_on)) expect(Object.keys(services)).toContain(name);
    }
  });

  test('docker-compose.yml makes the stores reachable for the service only', () => {
    for (const store of ['redis', 'postgres']) {
      expect(services[store]!.networks).toEqual(['stores']);
      expect(services[store]!.ports).toBeUndefined();
    }
    expect(compose.networks.stores).toEqual({ internal: true });
    const onStores = each.filter(([, { networks }]) => networks.includes('stores')).map(([name]) => name);
    expect(onStores.sort()).toEqual(['http', 'postgres', 'redis', 'worker']);
  });

  test('docker-compose.yml runs both roles with settings that the service knows', () => {
    for (const role of ['http', 'worker'] as const) {
      for (const name of Object.keys(services[role]!.environment!)) {
        expect(Object.keys(Environment.properties)).toContain(name);
      }
      const config = settings(role);
      expect(config.roles).toEqual({ http: role === 'http', worker: role === 'worker' });
      expect(config.allowVolatileRedis).toBe(false);
      for (const [url, secret] of [
        [config.REDIS_URL!, secrets.REDIS_PASSWORD],
        [config.DATABASE_URL!, secrets.POSTGRES_PASSWORD],
      ] as const) {
        const { hostname, password } = new URL(url);
        expect(Object.keys(services)).toContain(hostname);
        expect(password).toBe(secret);
      }
      // The grace period must exceed the time after which main.ts ends the process.
      expect(seconds(services[role]!.stop_grace_period)).toBeGreaterThan(10);
    }
    expect(services.postgres!.environment).toMatchObject({
      POSTGRES_USER: 'spindle',
      POSTGRES_DB: 'spindle',
    });
  });

  test('docker-compose.yml checks health at the ports on which the service listens', () => {
    const { PORT, METRICS_PORT, HOST } = settings('http');
    expect(HOST).toBe('0.0.0.0');
    expect(services.http!.healthcheck.test.join(' ')).toContain(`127.0.0.1:${PORT}/readyz`);
    expect(services.worker!.healthcheck.test.join(' ')).toContain(`127.0.0.1:${METRICS_PORT}/healthz`);
    expect(services.http!.ports).toEqual([`127.0.0.1:${PORT}:${PORT}`]);
    for (const [, { healthcheck }] of each) {
      // Only Docker would notice a syntax error in the JavaScript of a health check.
      const [kind, , flag, script] = healthcheck.test;
      if (kind === 'CMD' && flag === '-e') expect(() => new Function(script!)).not.toThrow();
    }
  });

  test('Prometheus in docker-compose.yml scrapes every process and reads its rules, and Grafana finds it', () => {
    const targets = prometheus.scrape_configs.flatMap(({ dns_sd_configs }) => dns_sd_configs);
    expect(targets.flatMap(({ names }) => names).sort()).toEqual(['http', 'worker']);
    for (const { names, port } of targets) {
      for (const name of names as ('http' | 'worker')[]) {
        expect(port).toBe(settings(name).METRICS_PORT);
        expect(settings(name).METRICS_HOST).toBe('0.0.0.0');
        const shared = services[name]!.networks.filter((network) =>
          services.prometheus!.networks.includes(network),
        );
        expect(shared).toEqual(['monitoring']);
      }
    }
    const mounted = (name: string) => services[name]!.volumes!.map((volume) => volume.split(':')[1]!);
    for (const file of prometheus.rule_files) {
      expect(mounted('prometheus')).toContain(join('/etc/prometheus', file, '..'));
    }
    expect(services.prometheus!.command).toContain('--config.file=/etc/prometheus/prometheus.yml');
    const { datasources } = parse(read('grafana/provisioning/datasources/prometheus.yml')) as {
      datasources: { url: string }[];
    };
    const { hostname, port } = new URL(datasources[0]!.url);
    expect(services[hostname]!.healthcheck.test.join(' ')).toContain(`:${port}/`);
    expect(services.grafana!.networks).toEqual(expect.arrayContaining(['monitoring']));
    const { providers } = parse(read('grafana/provisioning/dashboards/spindle.yml')) as {
      providers: { options: { path: string } }[];
    };
    for (const { options } of providers) expect(mounted('grafana')).toContain(options.path);
  });
});
describe('the Dockerfile', () => {
  const stages = dockerfile(read('Dockerfile'));
  const last = stages.at(-1)!;
  const values = (stage: typeof last, name: string): string[] =>
    stage.steps.filter((step) => step.name === name).map((step) => step.value);

  test('the Dockerfile uses a tagged image with the glibc and Node versions that the service supports', () => {
    for (const { image } of stages) expect(image).toMatch(/^node:24\.\d+\.\d+-trixie-slim$/);
    // `npm ci` leaves only the bindings that this machine may load.
    const abis = ['115', '127'].includes(process.versions.modules)
      ? ['115', '127']
      : [process.versions.modules];
    for (const abi of abis) {
      const binding = `node_modules/uWebSockets.js/dist/bin/uws_${process.platform}_${process.arch}_${abi}.node`;
      expect(existsSync(join(ROOT, binding)), binding).toBe(true);
    }
  });

  test('the Dockerfile runs the program directly as an ordinary user, with a health check', () => {
    expect(values(last, 'USER')).toEqual(['node']);
    const [command] = values(last, 'CMD');
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    expect(`exec ${(JSON.parse(command!) as string[]).join(' ')}`).toBe(scripts.start);
    expect(values(last, 'HEALTHCHECK')[0]).toMatch(/CMD \["node", "-e"/);
    expect(values(last, 'EXPOSE')).toEqual([`${settings('http').PORT} ${settings('http').METRICS_PORT}`]);
    // Files owned by the image's user could be modified by the running service.
    expect(read('Dockerfile')).not.toMatch(/--chown|--chmod/);
  });

  test('the Dockerfile puts the spindle command on the PATH, owned by root like all files', () => {
    const linked = values(last, 'RUN').find((command) => command.startsWith('ln -s '))!;
    const [, file, name] = /^ln -s (\S+) (\S+)$/.exec(linked)!;
    const { bin } = JSON.parse(read('package.json')) as { bin: Record<string, string> };
    expect([file, name]).toEqual([`/spindle/${bin.spindle}`, '/usr/local/bin/spindle']);
    const steps = last.steps.map(({ name: step }) => step);
    expect(steps.indexOf('USER')).toBeGreaterThan(steps.lastIndexOf('RUN'));
  });

  test('the Dockerfile copies only existing files, and .dockerignore sends exactly these to the build', () => {
    const ignored = read('.dockerignore')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'));
    expect(ignored[0]).toBe('*');
    const sent = new Set(ignored.slice(1).map((line) => /^!(.+)$/.exec(line)![1]!));
    const used = new Set<string>();
    for (const stage of stages) {
      for (const step of stage.steps) {
        if (step.name !== 'COPY' || step.from !== undefined) continue;
        for (const source of step.sources) {
          expect(existsSync(join(ROOT, source)), source).toBe(true);
          used.add(source.split('/')[0]!);
        }
      }
    }
    expect(used).toEqual(sent);
  });
});
