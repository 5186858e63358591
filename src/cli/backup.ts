import { resolve } from 'node:path'
import { counted } from '../text/counted.ts'
import type { OnProgress } from '../backup/makeBackup.ts'
import type { Manifest } from '../backup/manifest.ts'
import type { BackupSource } from '../backup/source.ts'
import { AppError } from '../errors.ts'
import { readClientConfig } from '../process/clientConfig.ts'
import { openBackupSource } from './backupSource.ts'
import { type CliCommand, command, type Invocation } from './command.ts'

const DIR = { DIR: { description: 'the directory of the backup' } } as const

const jsonOf = (dir: string, { created_at, log_id, position, master_key_id, blobs, segments }: Manifest) => ({
  directory: dir,
  created_at,
  log_id,
  position,
  master_key_id,
  blobs: blobs.count,
  bytes: blobs.content_bytes + segments.reduce((sum, { bytes }) => sum + bytes, 0),
})

const contentOf = (dir: string, manifest: Manifest): string => {
  const { position, blobs } = jsonOf(dir, manifest)
  return `${counted(position, 'event')} and ${counted(blobs, 'blob')}`
}

/** Shows events and blobs as the two parts of the work, which ends when it is interrupted. */
const showing = ({ progress, signal }: Pick<Invocation, 'progress' | 'signal'>): OnProgress => {
  const bars = { events: progress('events'), blobs: progress('blobs') }
  return ({ what, done, total }) => {
    signal.throwIfAborted()
    bars[what].report(done, total)
  }
}

type Begun = BackupSource & { readonly backup_id: string }

/** A source whose first backup has begun already. */
const begun = async (source: BackupSource): Promise<Begun> => {
  const starts = [await source.begin()]
  const { backup_id = '' } = starts[0] ?? {}
  return { ...source, backup_id, begin: async () => starts.shift() ?? source.begin() }
}

const locked = async <T>(source: Begun, lock: () => T): Promise<T> => {
  try {
    return lock()
  } catch (error) {
    await source.end(source.backup_id)
    throw error
  }
}

/** Restores into the external engines of a node, whose settings are those of the environment. */
const restoreCluster = async (
  dir: string,
  invocation: Pick<Invocation, 'progress' | 'signal'> & {
    readonly options: { readonly secrets?: string | undefined }
  },
) => {
  if (invocation.options.secrets !== undefined)
    throw new AppError(
      'bad_request',
      '--secrets: external engines need SVC_MASTER_KEY instead, on every node',
    )
  const [{ readConfig }, { restoreEngines }] = await Promise.all([
    import('../process/config.ts'),
    import('../process/restoreEngines.ts'),
  ])
  const { manifest, events } = await restoreEngines({
    dir,
    config: readConfig(),
    onProgress: showing(invocation),
  })
  const { blobs } = jsonOf(dir, manifest)
  return {
    json: { ...jsonOf(dir, manifest), events },
    text: `The engines contain ${counted(events, 'event')} and ${counted(blobs, 'blob')} of ${manifest.created_at}; start the nodes\n`,
  }
}

export const backupCommands: readonly CliCommand[] = [
  command({
    group: 'backup',
    name: 'create',
    isDefault: true,
    summary: 'back up a running service into a directory',
    description:
      'Backs up the running service to a position of its log, while it works. A directory with an earlier backup of the ' +
      'same service gets what is new, and loses what was erased. A backup that was interrupted is continued, and leaves ' +
      'the earlier one usable. The master key (secrets.json) is not in the backup, and no backup can be restored ' +
      'without it: keep it elsewhere. Only for embedded engines.',
    arguments: DIR,
    examples: [
      'svc backup /var/backups/svc',
      'SVC_URL=https://svc.example.com svc backup /var/backups/svc --json',
    ],
    async run(invocation) {
      const { args, operator, signal } = invocation
      const dir = resolve(args.DIR)
      const [{ makeBackup }, { lockBackup }] = await Promise.all([
        import('../backup/makeBackup.ts'),
        import('../process/lockBackup.ts'),
      ])
      const source = await begun(openBackupSource(operator(), signal)) // a refusal leaves no directory
      const unlock = await locked(source, () => lockBackup(dir))
      try {
        const manifest = await makeBackup({ dir, source, onProgress: showing(invocation) })
        return { json: jsonOf(dir, manifest), text: `${dir} contains ${contentOf(dir, manifest)}\n` }
      } finally {
        unlock()
      }
    },
  }),

  command({
    group: 'backup',
    name: 'verify',
    summary: 'check every byte of a backup',
    description:
      'Reads a backup and compares every file with its checksum. Each damaged, shortened or missing file is printed, and ' +
      'the exit code is 1. It needs no service.',
    arguments: DIR,
    examples: ['svc backup verify /var/backups/svc', 'svc backup verify /var/backups/svc --json'],
    async run(invocation) {
      const dir = resolve(invocation.args.DIR)
      const { verifyBackup } = await import('../backup/verifyBackup.ts')
      const { manifest, problems } = await verifyBackup(dir, showing(invocation))
      const text =
        problems.length === 0
          ? `${dir} is intact: ${contentOf(dir, manifest)} of ${manifest.created_at}\n`
          : `${problems.join('\n')}\n` +
            `Remove the changed files, then repeat svc backup ${dir}: it copies missing and shortened files again\n`
      return { json: { ...jsonOf(dir, manifest), problems }, text, failed: problems.length > 0 }
    },
  }),

  command({
    name: 'restore',
    summary: 'restore a backup into an empty data directory, or into empty external engines',
    description:
      'Restores a backup into SVC_DATA_DIR, which must be empty except for secrets.json. The service must not run there. ' +
      'The master key of the time of the backup is needed: in secrets.json, in SVC_MASTER_KEY, or in a file that ' +
      '--secrets names. All or nothing is restored. Start the service afterwards; it builds its read models again. If ' +
      'SVC_EVENT_STORE and SVC_BLOBS name external engines, the backup is restored into these, which must be empty: so an ' +
      'installation moves to a cluster with its credentials. SVC_MASTER_KEY must be that of the backup then.',
    arguments: DIR,
    options: {
      secrets: { value: 'FILE', description: 'copy this secrets.json of the service into SVC_DATA_DIR' },
    },
    examples: [
      'SVC_DATA_DIR=/var/lib/svc svc restore /var/backups/svc --secrets /safe/secrets.json',
      'SVC_DATA_DIR=/var/lib/svc SVC_MASTER_KEY=… svc restore /var/backups/svc',
      'SVC_EVENT_STORE=esdb://… SVC_BLOBS=s3://… SVC_MASTER_KEY=… svc restore /var/backups/svc',
    ],
    async run(invocation) {
      const { args, options } = invocation
      const dir = resolve(args.DIR)
      const { dataDir, masterKey, hasExternalEngines } = readClientConfig()
      if (hasExternalEngines) return restoreCluster(dir, invocation)
      if (dir === dataDir) throw new AppError('bad_request', 'DIR: expected a backup, got SVC_DATA_DIR')
      const { restoreDataDir } = await import('../process/restoreDataDir.ts')
      const secrets = options.secrets === undefined ? null : resolve(options.secrets)
      const manifest = await restoreDataDir({
        dir,
        dataDir,
        masterKey,
        secrets,
        onProgress: showing(invocation),
      })
      return {
        json: { ...jsonOf(dir, manifest), data_dir: dataDir },
        text: `${dataDir} contains ${contentOf(dir, manifest)} of ${manifest.created_at}; start the service there\n`,
      }
    },
  }),
]
