import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { parseApiToken } from '../../src/access/tokens.ts'
import { isAppError } from '../../src/errors.ts'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const none = { masterKey: null, previousMasterKey: null, apiKey: null, operatorToken: null }
const fileOf = (dataDir: string) => join(dataDir, 'secrets.json')
const storedIn = (dataDir: string) =>
  JSON.parse(readFileSync(fileOf(dataDir), 'utf8')) as Readonly<Record<string, string>>

/** The message of the refusal, which is one line. */
const refusal = (config: Parameters<typeof openSecrets>[0]): string => {
  try {
    openSecrets(config)
  } catch (error) {
    if (!isAppError(error)) throw error
    assert.not.match(error.message, '\n')
    return error.message
  }
  throw new Error('Expected a refusal')
}

const secrets = suite('secrets.json')

secrets('is created for a new installation, readable by its owner only, and used again', () => {
  const dataDir = tempDir()
  const made = openSecrets({ ...none, dataDir })
  assert.equal(made.origins, { apiKey: 'new', operatorToken: 'new' })
  assert.is(statSync(fileOf(dataDir)).mode & 0o777, 0o600)
  const again = openSecrets({ ...none, dataDir })
  assert.equal(again.origins, { apiKey: 'stored', operatorToken: 'stored' })
  assert.equal(
    [again.masterKey, again.apiKey, again.operatorToken],
    [made.masterKey, made.apiKey, made.operatorToken],
  )
  assert.ok(parseApiToken(made.apiKey))
})

secrets('contains no token that the environment provides', () => {
  const dataDir = tempDir()
  const operatorToken = 'the operator chose this token for it'
  const { origins } = openSecrets({ ...none, dataDir, operatorToken })
  assert.equal(origins, { apiKey: 'new', operatorToken: 'environment' })
  assert.equal(Object.keys(storedIn(dataDir)).sort(), ['api_key', 'master_key'])
  assert.not.match(readFileSync(fileOf(dataDir), 'utf8'), operatorToken)
})

secrets('gets the token that the environment no longer provides', () => {
  const dataDir = tempDir()
  const first = openSecrets({ ...none, dataDir, operatorToken: 'the operator chose this token for it' })
  const { origins, operatorToken, masterKey, apiKey } = openSecrets({ ...none, dataDir })
  assert.equal(origins, { apiKey: 'stored', operatorToken: 'new' })
  assert.equal([masterKey, apiKey], [first.masterKey, first.apiKey])
  assert.is(openSecrets({ ...none, dataDir }).operatorToken, operatorToken)
})

for (const data of ['log.db', 'blobs'])
  secrets(`that is missing beside ${data} is not created again`, () => {
    const dataDir = tempDir()
    if (data === 'blobs') mkdirSync(join(dataDir, data))
    else writeFileSync(join(dataDir, data), '')
    const message = refusal({ ...none, dataDir })
    assert.match(message, fileOf(dataDir))
    assert.match(message, /backup.*SVC_MASTER_KEY/)
    assert.not(existsSync(fileOf(dataDir)))
    const masterKey = Buffer.alloc(32, 7)
    assert.equal(openSecrets({ ...none, dataDir, masterKey }).masterKey, masterKey)
    assert.not(existsSync(fileOf(dataDir)))
  })

const damages: Readonly<Record<string, { damage: (file: string) => void; names: RegExp }>> = {
  'was truncated': {
    damage: (file) => writeFileSync(file, readFileSync(file).subarray(0, 40)),
    names: /JSON/,
  },
  'is empty': { damage: (file) => writeFileSync(file, ''), names: /JSON/ },
  'is no object': { damage: (file) => writeFileSync(file, 'null'), names: /JSON object/ },
  'has no master key': {
    damage: (file) => writeFileSync(file, '{"api_key":"x"}'),
    names: /master_key is missing/,
  },
  'has a short master key': {
    damage: (file) => writeFileSync(file, '{"master_key":"c2hvcnQ="}'),
    names: /master_key is invalid/,
  },
}
for (const [damage, { damage: apply, names }] of Object.entries(damages))
  secrets(`that ${damage} is refused in one line, and stays as it is`, () => {
    const dataDir = tempDir()
    openSecrets({ ...none, dataDir })
    apply(fileOf(dataDir))
    const before = readFileSync(fileOf(dataDir), 'utf8')
    const message = refusal({ ...none, dataDir })
    assert.match(message, names)
    assert.match(message, fileOf(dataDir))
    assert.is(readFileSync(fileOf(dataDir), 'utf8'), before)
  })

secrets('that is a folder is refused in one line, and keeps its mode', () => {
  const dataDir = tempDir()
  mkdirSync(fileOf(dataDir), { mode: 0o755 })
  chmodSync(fileOf(dataDir), 0o755)
  assert.is(
    refusal({ ...none, dataDir }),
    `${fileOf(dataDir)}: cannot be read (EISDIR): it must be a file that this user may read, in a folder that this user may enter`,
  )
  assert.is(statSync(fileOf(dataDir)).mode & 0o777, 0o755)
})

secrets('that is a link is read and replaced at its target', () => {
  const [dataDir, target] = [tempDir(), tempDir()]
  const { masterKey } = openSecrets({ ...none, dataDir: target })
  symlinkSync(fileOf(target), fileOf(dataDir))
  const { file, masterKey: linked } = openSecrets({ ...none, dataDir })
  assert.equal(linked, masterKey)
  const next = Buffer.alloc(32, 9)
  file?.replaceMasterKey(next, (key) => masterKey.equals(key))
  assert.ok(lstatSync(fileOf(dataDir)).isSymbolicLink())
  assert.equal(openSecrets({ ...none, dataDir: target }).masterKey, next)
})

secrets('that is a link to a missing file is not created again', () => {
  const [dataDir, target] = [tempDir(), tempDir()]
  symlinkSync(fileOf(target), fileOf(dataDir))
  assert.match(refusal({ ...none, dataDir }), 'it is a link, and its target is missing; mount or restore')
  assert.ok(lstatSync(fileOf(dataDir)).isSymbolicLink())
  rmSync(fileOf(dataDir))
  symlinkSync(fileOf(dataDir), fileOf(dataDir))
  assert.match(refusal({ ...none, dataDir }), 'cannot be read (ELOOP)')
})

secrets('that cannot be written is reported with the way out', () => {
  const dataDir = tempDir()
  const { file, masterKey } = openSecrets({ ...none, dataDir })
  mkdirSync(`${fileOf(dataDir)}.new`)
  assert.throws(
    () => file?.replaceMasterKey(Buffer.alloc(32, 9), (key) => masterKey.equals(key)),
    /secrets\.json: cannot be written \(ERR_FS_EISDIR\): .*SVC_MASTER_KEY/,
  )
})

for (const mode of [0o660, 0o644])
  secrets(`that other users can read (mode ${mode.toString(8)}) is closed to them, with a warning`, () => {
    const dataDir = tempDir()
    const { masterKey } = openSecrets({ ...none, dataDir })
    chmodSync(fileOf(dataDir), mode)
    const warnings: string[] = []
    const again = openSecrets({ ...none, dataDir }, (message) => void warnings.push(message))
    assert.equal(again.masterKey, masterKey)
    assert.match(warnings.join(), new RegExp(`${fileOf(dataDir)} .mode 0${mode.toString(8)}.*replace`))
    assert.is(statSync(fileOf(dataDir)).mode & 0o777, 0o600)
  })

secrets('that a crash left half written beside the complete one does not prevent the next write', () => {
  const dataDir = tempDir()
  const { file, masterKey } = openSecrets({ ...none, dataDir })
  writeFileSync(`${fileOf(dataDir)}.new`, '{"mas')
  const next = Buffer.alloc(32, 9)
  file?.replaceMasterKey(next, (key) => masterKey.equals(key))
  const replaced = openSecrets({ ...none, dataDir })
  assert.equal([replaced.masterKey, replaced.previousMasterKey], [next, masterKey])
  file?.dropPreviousMasterKey((key) => masterKey.equals(key))
  assert.is(openSecrets({ ...none, dataDir }).previousMasterKey, null)
  assert.not(existsSync(`${fileOf(dataDir)}.new`))
})

secrets(
  'keeps the former master key of a rotation that begins before that of the last one is dropped',
  () => {
    const dataDir = tempDir()
    const { file, masterKey: first } = openSecrets({ ...none, dataDir })
    const [second, third] = [Buffer.alloc(32, 8), Buffer.alloc(32, 9)]
    file?.replaceMasterKey(second, (key) => first.equals(key))
    file?.replaceMasterKey(third, (key) => second.equals(key))
    file?.dropPreviousMasterKey((key) => first.equals(key))
    const { masterKey, previousMasterKey } = openSecrets({ ...none, dataDir })
    assert.equal([masterKey, previousMasterKey], [third, second])
  },
)

secrets('is not needed with SVC_MASTER_KEY: the tokens are derived, and equal on all nodes', () => {
  const masterKey = Buffer.alloc(32, 7)
  const [one, two] = [tempDir(), tempDir()].map((dataDir) => openSecrets({ ...none, dataDir, masterKey }))
  assert.equal(one?.origins, { apiKey: 'derived', operatorToken: 'derived' })
  assert.equal([one?.apiKey, one?.operatorToken], [two?.apiKey, two?.operatorToken])
})
secrets.run()
