import { hash } from 'node:crypto'

/**
 * The names of all event-store streams. No other file builds one. Each begins with a small letter and each type of fact with a
 * capital, by which installations on one server are told apart.
 */
export const streamOf = {
  /** Everything of one svc stream: its events, runs and live data, in order. */
  stream: (stream_id: string) => `stream-${stream_id}`,
  project: (project_id: string) => `project-${project_id}`,
  projectName: (env_id: string, name: string) => `projectname-${env_id}-${name}`,
  /** The reservation of a webhook address in an environment; the address is hashed, because it may be long. */
  webhook: (env_id: string, { method, service, path }: { method: string; service: string; path: string }) =>
    `webhook-${env_id}-${hash('sha256', `${method} ${service}${path}`)}`,
  /** The file at one path of an environment; the path is hashed, because it may be long and have any characters. */
  file: (env_id: string, path: string) => `file-${env_id}-${hash('sha256', path)}`,
  upload: (upload_id: string) => `upload-${upload_id}`,
  /** The master keys of the installation. */
  installation: 'installation',
  /** The end of a session of the operator in the dashboard. */
  operatorSession: (session_id: string) => `operatorsession-${session_id}`,
  org: (org_id: string) => `org-${org_id}`,
  orgSlug: (slug: string) => `orgslug-${slug}`,
  /** Every custom domain of an organization. */
  domains: (org_id: string) => `domains-${org_id}`,
  domainName: (domain: string) => `domainname-${domain}`,
  env: (env_id: string) => `env-${env_id}`,
  /** The days of an environment that were counted and expired. */
  calls: (env_id: string) => `calls-${env_id}`,
  key: (api_key_id: string) => `key-${api_key_id}`,
  /** The claim and answer of an Idempotency-Key; the hash is that of its scope and the key. */
  request: (hash: string) => `idem-${hash}`,
  /** The output of a run. */
  runLog: (run_id: string) => `runlog-${run_id}`,
  /** The context variables of a project. */
  context: (project_id: string) => `context-${project_id}`,
  /** The data keys of an environment or of a project. */
  dataKeys: (env_or_project_id: string) => `datakeys-${env_or_project_id}`,
  /** The sessions and service keys issued under an API key. */
  issued: (api_key_id: string) => `issued-${api_key_id}`,
  /** The uses of a service key on a day. */
  keyUse: (service_key_id: string, day: string) => `keyuse-${service_key_id}-${day}`,
  worker: (worker_id: string) => `worker-${worker_id}`,
}
