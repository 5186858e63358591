import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as assert from 'uvu/assert'
import { newId } from '../../src/ids.ts'
import { openBalancer } from '../support/balancer.ts'
import type { Project } from '../support/build.ts'
import { startCli } from '../support/cli.ts'
import { spawnServer, startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const svc = fileURLToPath(new URL('../../bin/svc.js', import.meta.url))

const server = await startServer({ env: {} })
const { api } = server
const env = { PATH: process.env['PATH'], SVC_URL: server.url, SVC_DATA_DIR: server.dataDir }
const { project_id } = await api.post<Project>('/projects', { name: 'first' })
await api.patch('/projects/first', { name: 'second' })
await api.post('/projects/second/context', { key: 'KEY', value: 'a hidden value' })
const dir = tempDir()

interface Ended {
  readonly code: number
  readonly out: string
  readonly err: string
}
const cli = (...args: readonly string[]): Promise<Ended> =>
  new Promise((resolve) => {
    execFile(process.execPath, [svc, 'audit', ...args], { env }, (error, out, err) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, out, err }),
    )
  })
const linesOf = <T>({ code, out, err }: Ended): T[] => {
  assert.equal([code, err], [0, ''])
  return out
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T)
}

interface Line {
  readonly position: string
  readonly type: string
  readonly actor: { readonly credential_type: string }
}

const audit = suite('svc audit')

audit('prints one object per line, oldest first, the same as the API', async () => {
  const lines = linesOf<Line>(await cli('--resource', project_id, '--json'))
  assert.equal(
    lines.map(({ type }) => type),
    ['ProjectCreated', 'ProjectRenamed', 'DataKeyCreated', 'ContextVariableCreated'],
  )
  const { data } = await api.page<Line>(`/audit?resource=${project_id}&after=start&limit=100`)
  assert.equal(
    lines.map(({ position }) => position),
    data.map(({ position }) => position),
  )
  const text = (await cli('--type', 'ProjectRenamed')).out
  assert.match(text, /ProjectRenamed {2}project-.* {2}by {2}api-key/)
})

audit('prints the changes of an environment by its id and by its name', async () => {
  const named = linesOf<Line>(await cli('--env', 'local/dev', '--type', 'ProjectRenamed', '--json'))
  assert.is(named.length, 1)
  const { env_id } = await api.get<{ env_id: string }>('/env')
  assert.equal(linesOf(await cli('--env', env_id, '--type', 'ProjectRenamed', '--json')), named)
  assert.equal(linesOf(await cli('--env', newId(), '--json')), [])
})

audit('prints more changes than one page of the API has', async () => {
  for (let n = 0; n < 101; n++) await api.send('PUT', `/files/upload/many/${n}`, { body: 'x' })
  const lines = linesOf<Line>(await cli('--type', 'FileStored', '--json'))
  assert.is(new Set(lines.map(({ position }) => position)).size, 101)
})

audit('follows across a restart of the service, and prints each change once', async () => {
  const dataDir = tempDir()
  const address = await openBalancer() // another program could take a port that the service has left
  const start = async () => {
    const started = await spawnServer({ dataDir })
    address.to([started.url])
    return started
  }
  let service = await start()
  const following = startCli(['audit', '--follow', '--json'], {
    env: { SVC_URL: address.url, SVC_DATA_DIR: dataDir },
  })
  try {
    await following.shows('EnvCreated')
    await service.end('SIGKILL')
    service = await start()
    await service.api.post('/projects', { name: 'later' })
    await following.shows('ProjectCreated')
    following.process.kill('SIGINT')
    assert.is(await following.ended, 0)
    const positions = following
      .out()
      .split('\n')
      .slice(0, -1)
      .map((line) => (JSON.parse(line) as Line).position)
    assert.equal(positions, [...new Set(positions)].sort())
  } finally {
    following.process.kill('SIGKILL')
    await service.stop()
    await address.close()
  }
})

audit('follows further changes until it is interrupted', async () => {
  const child = spawn(process.execPath, [svc, 'audit', '--type', 'ProjectCreated', '--follow', '--json'], {
    env,
  })
  let out = ''
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  await until(() => out.includes('first'))
  const name = `followed-${newId()}`
  await api.post('/projects', { name })
  await until(() => out.includes(name))
  child.kill('SIGINT')
  await once(child, 'close')
  assert.is(out.split('\n').filter((line) => line.includes(name)).length, 1)
})

audit('replay prints each state and its changes', async () => {
  const facts = linesOf<{ type: string; changes: Record<string, unknown>; state: { name: string } }>(
    await cli('replay', '--resource', project_id, '--json'),
  )
  assert.equal(
    facts.map(({ type, state }) => [type, state.name]),
    [
      ['ProjectCreated', 'first'],
      ['ProjectRenamed', 'second'],
    ],
  )
  assert.equal(facts[1]?.changes['name'], { before: 'first', after: 'second' })
  assert.match((await cli('replay', '--stream', `project-${project_id}`)).out, 'name: "first" -> "second"')
})

audit('export and verify agree, and a changed line is named with code 1', async () => {
  const file = join(dir, 'audit.jsonl')
  const [written] = linesOf<{ facts: number; hash: string }>(await cli('export', file, '--json'))
  assert.ok(written && written.facts > 3)
  assert.not.match(readFileSync(file, 'utf8'), 'a hidden value')
  const [verified] = linesOf<object>(await cli('verify', file, '--hash', written.hash, '--json'))
  assert.equal(verified, { ok: true, facts: written.facts, hash: written.hash })
  const again = await cli('export', file)
  assert.is(again.code, 1)
  assert.match(again.err, 'exists already')
  const lines = readFileSync(file, 'utf8').split('\n')
  writeFileSync(file, lines.with(2, (lines[2] ?? '').replace('"type":"', '"type":"X')).join('\n'))
  const { code, out } = await cli('verify', file)
  assert.is(code, 1)
  assert.match(out, /line 3: the line was changed/)
})

const refused: [what: string, args: readonly string[], code: number, message: RegExp][] = [
  ['replay of neither', ['replay'], 2, /expected either --stream or --resource/],
  [
    'replay of both',
    ['replay', '--stream', 's', '--resource', 'r'],
    2,
    /expected either --stream or --resource/,
  ],
  [
    'replay of an unknown resource',
    ['replay', '--resource', newId()],
    1,
    /nothing in the log has the id, path.*; svc audit or GET \/operator\/audit lists/,
  ],
  [
    'replay until a time to come',
    ['replay', '--resource', project_id, '--until', '2999-01-01'],
    1,
    /in the past/,
  ],
  ['an unknown environment', ['--env', 'local/nope'], 1, /No environment "local\/nope"/],
  [
    'something that is no environment',
    ['--env', 'nope'],
    1,
    /Expected ORGANIZATION\/NAME or the id of an environment, got "nope"/,
  ],
  ['an unknown type', ['--type', 'Nope'], 1, /type: expected one of/],
  ['a wrong hash', ['verify', 'x', '--hash', '12'], 2, /64 hexadecimal digits/],
  ['a file that is missing', ['verify', join(dir, 'none')], 1, /none: cannot be read \(ENOENT\)/],
]
for (const [what, args, code, message] of refused)
  audit(`ends ${what} with code ${code} and one line`, async () => {
    const ended = await cli(...args)
    assert.equal([ended.code, ended.out], [code, ''])
    assert.match(ended.err, message)
    assert.is(ended.err.trimEnd().split('\n').length, 1)
  })

audit.after(() => server.stop())
audit.run()
