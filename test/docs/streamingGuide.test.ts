import { execFile } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import * as assert from 'uvu/assert'
import { hasChromium, startChromium } from '../support/chromium.ts'
import { freePort } from '../support/freePort.ts'
import { EMBEDDED } from '../support/installation.ts'
import { install, npmPack, unpacked } from '../support/installed.ts'
import { launch } from '../support/launch.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const textOf = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

const page = textOf('docs/guides/streaming-to-a-browser.md')
const blocks = [...page.matchAll(/^```(\w+)[^\n]*\n(.*?)^```$/gms)].map(([, kind = '', text = '']) => ({
  kind,
  text,
}))
const commands = blocks.flatMap(({ kind, text }) => (kind === 'sh' ? [text] : []))
/** The first line of a file in the guide is a comment with its path. */
const files = blocks.flatMap(({ kind, text }) => {
  const [, path, content = ''] = /^(?:\/\/|<!--) (\S+)(?: -->)?\n(.*)$/s.exec(text) ?? []
  return kind === 'sh' ? [] : [{ path: path ?? '', content }]
})

/** `npx` would ask the registry: the package of this test is not installed by npm. */
const commandsOf = (project: string): string => {
  const dir = tempDir()
  const npx = join(dir, 'npx')
  const svc = join(project, 'node_modules/svc/bin/svc.js')
  writeFileSync(npx, `#!/bin/sh\n[ "$1" = svc ] && shift && exec "${process.execPath}" "${svc}" "$@"\n`)
  chmodSync(npx, 0o755)
  return dir
}

const isHere = hasChromium()
const guide = suite('the guide of streaming to a browser', { timeoutMs: 180_000 })

guide('shows the files of the example', () => {
  assert.equal(
    files.map(({ path }) => path),
    ['src/agent.ts', 'server.ts', 'page/index.html', 'page/page.js'],
  )
  for (const { path, content } of files) assert.is(content, textOf(`examples/streaming/${path}`), path)
})

const works = async (): Promise<void> => {
  const empty = tempDir()
  writeFileSync(join(empty, 'package.json'), '{}')
  const cwd = await install(await unpacked(await npmPack()), empty)
  for (const { path, content } of files) {
    mkdirSync(dirname(join(cwd, path)), { recursive: true })
    writeFileSync(join(cwd, path), content)
  }
  const [prepare = '', serve = '', start = ''] = commands
  const PATH = [commandsOf(cwd), process.env['PATH']].join(delimiter)
  const port = await freePort()
  const env = { HOME: tempDir(), PATH, SVC_URL: `http://127.0.0.1:${port}` }
  await promisify(execFile)('bash', ['-ec', prepare], { cwd, env })
  const served = await launch(['bash', '-ec', serve], {
    cwd,
    env: { ...EMBEDDED, HOME: env.HOME, PATH, PORT: String(port) },
    ready: /agent\/answer {2}event/,
  })
  const started = await launch(['bash', '-ec', start], {
    cwd,
    env: { ...env, PORT: '0' },
    ready: /http:\/\/localhost:\d+/,
  })
  const chromium = await startChromium()
  try {
    const { page: shown } = await chromium.open(started.ready)
    await shown.click('button')
    await shown.getByRole('status').filter({ hasText: 'complete' }).waitFor()
    assert.match(
      (await shown.textContent('pre')) ?? '',
      /^You asked: How do streams survive\?\n1 2 3 .* 78 79 $/,
    )
  } finally {
    await chromium.close()
    await started.stop()
    await served.stop()
  }
}

if (isHere) guide('works as written, in an empty folder with the package', works)
else guide.skip('works as written, in an empty folder with the package')

guide.run()
