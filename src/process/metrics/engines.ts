import { statfs } from 'node:fs/promises'
import type { Metric, Sample } from '../../ports/metrics.ts'
import type { Sources } from './sources.ts'

const asNumber = (is: boolean): number => (is ? 1 : 0)

/** The node, its engines and its disk. */
export const engineMetrics = (sources: Sources): readonly Metric[] => {
  const { about, config, outages, readiness } = sources
  const redis = (): readonly Sample[] => {
    const { node } = sources
    if (config.redis === null || !node) return []
    return [{ labels: { engine: 'redis' }, value: asNumber(node.hints.connected) }]
  }
  return [
    {
      kind: 'gauge',
      name: 'svc_build_info',
      help: 'Always 1; the labels are the version and the commit of this node',
      labels: ['version', 'git_sha'],
      read: () => [{ labels: { version: about.version, git_sha: about.git_sha }, value: 1 }],
    },
    {
      kind: 'gauge',
      name: 'svc_node_role',
      help: 'Always 1; one series for each role of this node',
      labels: ['role'],
      read: () => [...config.roles].map((role) => ({ labels: { role }, value: 1 })),
    },
    {
      kind: 'gauge',
      name: 'svc_ready',
      help: 'Whether this node is ready, as in /readyz: 1 or 0',
      read: () => [{ value: asNumber(readiness.reason === null) }],
    },
    {
      kind: 'gauge',
      name: 'svc_engine_up',
      help: 'Whether an external engine answers this node: 1 or 0',
      labels: ['engine'],
      read: () => [
        ...outages.engines.map(({ id, answers }) => ({ labels: { engine: id }, value: asNumber(answers) })),
        ...redis(),
      ],
    },
    {
      kind: 'counter',
      name: 'svc_engine_outages_total',
      help: 'Outages of an external engine that this node has noticed since its start',
      labels: ['engine'],
      read: () => outages.engines.map(({ id, outages: value }) => ({ labels: { engine: id }, value })),
    },
    {
      kind: 'gauge',
      name: 'svc_disk_free_bytes',
      help: 'Bytes that the service can still write on the disk of its data directory',
      read: () => diskOf(config.dataDir, ({ bavail, bsize }) => bavail * bsize),
    },
    {
      kind: 'gauge',
      name: 'svc_disk_size_bytes',
      help: 'Bytes of the disk of the data directory',
      read: () => diskOf(config.dataDir, ({ blocks, bsize }) => blocks * bsize),
    },
  ]
}

interface Disk {
  readonly bavail: number
  readonly blocks: number
  readonly bsize: number
}

/** Some file systems do not report their room. */
const diskOf = async (dir: string, value: (disk: Disk) => number): Promise<readonly Sample[]> => {
  try {
    return [{ value: value(await statfs(dir)) }]
  } catch {
    return []
  }
}
