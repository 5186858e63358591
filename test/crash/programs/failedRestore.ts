import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MANIFEST, manifestText } from '../../../src/backup/manifest.ts'
import { restoreDataDir } from '../../../src/process/restoreDataDir.ts'
import { MasterKeys } from '../../../src/secrets/masterKeys.ts'
import { acknowledge } from './acknowledge.ts'

const [, , root = ''] = process.argv
const dir = join(root, 'backup')
mkdirSync(dir)
const masterKey = Buffer.alloc(32, 1)
const keys = new MasterKeys([masterKey])
const missing = { bytes: 1, sha256: '0'.repeat(64) }
writeFileSync(
  join(dir, MANIFEST),
  manifestText({
    created_at: '2026-05-01T10:00:00.000Z',
    log_id: 'log',
    position: 0,
    master_key_id: keys.configured,
    canary: keys.canaryOf(keys.configured),
    segments: [],
    blobs: { ...missing, count: 0, content_bytes: 0 },
    consumers: missing,
  }),
)
const given = { dir, dataDir: join(root, 'data'), masterKey, secrets: null, onProgress: () => {} }
await restoreDataDir(given).catch(() => acknowledge('refused'))
