/** Renders the chart in deploy/helm with Helm for tests. */
import { spawnSync } from 'node:child_process';
import { expect } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { findHelm } from '../support/helm.js';
import { ROOT } from '../support/root.js';

interface Probe {
  httpGet: { path: string; port: string };
}
interface Container {
  image: string;
  command?: string[];
  env: {
    name: string;
    value?: string;
    valueFrom?: { secretKeyRef: { name: string; key: string; optional?: true } };
  }[];
  ports?: { name: string; containerPort: number }[];
  securityContext: object;
  volumeMounts: { mountPath: string }[];
  lifecycle?: { preStop: { exec: { command: string[] } } };
  startupProbe?: Probe;
  livenessProbe?: Probe;
  readinessProbe?: Probe;
  resources: { requests: object; limits: object };
}
export interface Pod {
  metadata: { labels: Record<string, string> };
  spec: {
    terminationGracePeriodSeconds: number;
    securityContext: object;
    volumes: { name: string }[];
    containers: [Container];
  };
}
export interface Manifest {
  kind: string;
  metadata: { name: string; labels: Record<string, string> };
  spec: {
    template?: Pod;
    selector?: Record<string, string> & { matchLabels?: Record<string, string> };
    ports?: { targetPort: string }[];
    scaleTargetRef?: { kind: string; name: string };
  };
}

export const CHART = 'deploy/helm/spindle';

export const helm = await findHelm();
/** Returns the manifests that Helm renders from the chart, or none if Helm is not installed. */
export function rendered(...options: string[]): Manifest[] {
  if (helm === undefined) return [];
  const args = ['template', 'spindle', CHART, '--namespace', 'spindle', ...options];
  const made = spawnSync(helm, args, { cwd: ROOT, encoding: 'utf8' });
  expect(made.status, made.stderr).toBe(0);
  return parseAllDocuments(made.stdout).map((document) => {
    expect(document.errors).toEqual([]);
    return document.toJS() as Manifest;
  });
}
