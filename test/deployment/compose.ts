/** Reads docker-compose.yml with its variables filled in. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { ROOT } from '../support/root.js';

export interface ComposeService {
  image: string;
  build?: string;
  user: string;
  command?: string;
  environment?: Record<string, string>;
  volumes?: string[];
  networks: string[];
  ports?: string[];
  healthcheck: { test: string[] };
  stop_grace_period: string;
  read_only: boolean;
  cap_drop: string[];
  security_opt: string[];
  logging: { options: Record<string, string> };
  depends_on?: Record<string, { condition: string }>;
  deploy: { resources: { limits: Record<string, string> } };
}

export const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
export const secrets = Object.fromEntries(
  [...read('.env.example').matchAll(/^([A-Z_]+)=(.*)$/gm)].map(([, name]) => [
    name!,
    name === 'WEBHOOK_SECRETS_KEY'
      ? Buffer.alloc(32, 7).toString('base64')
      : `${name!.toLowerCase().replaceAll('_', '')}0123456789`,
  ]),
);
export const text = read('docker-compose.yml');
export const compose = parse(
  text.replace(
    /\$\{([A-Z_]+):[?-]([^}]*)\}/g,
    (_all, name: string, otherwise: string) => secrets[name] ?? otherwise,
  ),
  { merge: true },
) as {
  services: Record<string, ComposeService>;
  networks: Record<string, { internal?: boolean } | null>;
  volumes: Record<string, unknown>;
};
