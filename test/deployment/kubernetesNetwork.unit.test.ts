/** Checks the ingresses and network policies of the chart in deploy/helm. */
import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { BASES } from '../../src/api/contract/apis.js';
import { ROOT } from '../support/root.js';
import { CHART, helm, rendered } from './chart.js';

interface Ingress {
  metadata: { name: string };
  spec: {
    ingressClassName?: string;
    tls: object[];
    rules: [
      { host: string; http: { paths: { path: string; pathType: string; backend: { service: object } }[] } },
    ];
  };
}
interface NetworkPolicy {
  metadata: { name: string };
  spec: {
    podSelector: { matchLabels: Record<string, string> };
    policyTypes: string[];
    ingress?: object[];
    egress: object[];
  };
}

describe.skipIf(helm === undefined)(
  `the network manifests of the chart${helm === undefined ? ' (skipped: no Helm here)' : ''}`,
  () => {
    test('the chart serves partners and operators under two host names, and no path under both', () => {
      const made = (...options: string[]): Ingress[] =>
        rendered(...options).filter(({ kind }) => kind === 'Ingress') as unknown as Ingress[];
      expect(made()).toEqual([]);
      const on = (audience: string): string =>
        `ingress.${audience}.enabled=true,ingress.${audience}.host=${audience}.example.com,ingress.${audience}.tlsSecret=${audience}`;
      const ingresses = made(
        '--set',
        `${on('partners')},${on('operators')},ingress.operators.className=inside`,
      );
      const pathsOf = new Map(
        ingresses.map(({ metadata, spec }) => [
          metadata.name,
          spec.rules[0].http.paths.map(({ path }) => path),
        ]),
      );
      const pages = ['/console', '/docs', '/log', '/verify', '/verify.mjs'];
      const served = [...Object.values(BASES), ...pages];
      const isPartners = (path: string): boolean => !/^\/(console|api\/operator)/.test(path);
      expect([...pathsOf.keys()].sort()).toEqual(['spindle-operators', 'spindle-partners']);
      for (const path of served) {
        const [own, other] = isPartners(path) ? ['partners', 'operators'] : ['operators', 'partners'];
        const covers = (audience: string): boolean =>
          pathsOf.get(`spindle-${audience}`)!.some((prefix) => `${path}/`.startsWith(`${prefix}/`));
        expect([path, covers(own!), covers(other!)]).toEqual([path, true, false]);
      }
      for (const { spec } of ingresses) {
        const [{ host, http }] = spec.rules;
        expect(spec.tls).toEqual([{ hosts: [host], secretName: host.split('.')[0] }]);
        for (const { backend, pathType } of http.paths)
          expect([backend.service, pathType]).toEqual([
            { name: 'spindle', port: { name: 'http' } },
            'Prefix',
          ]);
      }
      expect(ingresses.map(({ spec }) => spec.ingressClassName).sort()).toEqual(['inside', undefined]);
      const unnamed = spawnSync(helm!, ['template', CHART, '--set', 'ingress.partners.enabled=true'], {
        cwd: ROOT,
        encoding: 'utf8',
      });
      expect(unnamed.stderr).toContain('ingress.partners.host says at which name it is served');
    });

    test("the chart's network policies admit API, metrics and stores, and let only workers reach the internet", () => {
      const named = (label: string) => [{ namespaceSelector: { matchLabels: { name: label } } }];
      const policy = {
        enabled: true,
        clients: named('edge'),
        scrapers: named('monitoring'),
        stores: named('stores'),
      };
      const all = rendered('--set-json', `networkPolicy=${JSON.stringify(policy)}`);
      const policies = all.filter(({ kind }) => kind === 'NetworkPolicy') as unknown as NetworkPolicy[];
      const templates = all.flatMap(({ metadata, spec }) =>
        spec.template ? [[metadata.name, spec.template] as const] : [],
      );
      const dns = {
        ports: [
          { protocol: 'UDP', port: 53 },
          { protocol: 'TCP', port: 53 },
        ],
      };
      const tcp = (...ports: (number | string)[]) => ports.map((port) => ({ protocol: 'TCP', port }));
      const stores = { ports: tcp(6379, 5432), to: policy.stores };
      const api = { ports: tcp('http'), from: policy.clients };
      const metrics = { ports: tcp('metrics'), from: policy.scrapers };
      const outside = { ports: tcp(443, 587) };
      const wanted: Record<string, { ingress?: object[]; egress: object[] }> = {
        'spindle-front-end': { ingress: [api, metrics], egress: [dns, stores] },
        'spindle-worker': { ingress: [metrics], egress: [dns, stores, outside] },
        'spindle-migration': { egress: [dns, stores] },
      };
      expect(policies.map(({ metadata }) => metadata.name).sort()).toEqual(Object.keys(wanted).sort());
      for (const { metadata, spec } of policies) {
        const { podSelector, policyTypes, ...rules } = spec;
        expect(policyTypes).toEqual(['Ingress', 'Egress']);
        expect(rules).toEqual(wanted[metadata.name]);
        const chosen = templates.filter(([, pod]) =>
          Object.entries(podSelector.matchLabels).every(
            ([label, value]) => pod.metadata.labels[label] === value,
          ),
        );
        expect(chosen.map(([name]) => name)).toEqual([metadata.name]);
      }
    });
  },
);
