/**
 * Runs other client generators over the OpenAPI document: `npm run generators`. A warning or a dropped endpoint is a failure.
 * Part of .ci/run, and not of `npm test`, because it installs them from their registries, into a temporary directory.
 */
import { execFile } from 'node:child_process'
import { cpSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { toOpenApi } from '../../src/api/openapi/document.ts'
import { messageOf } from '../../src/errors.ts'
import { allRoutes } from '../../src/api/routes/index.ts'
import { tempDir } from '../support/tempDir.ts'

const dir = tempDir()
const run = promisify(execFile)

/** Runs a program in the directory, and resolves with all that it printed. Rejects if it fails. */
const output = async (file: string, ...args: readonly string[]): Promise<string> => {
  const { stdout, stderr } = await run(file, [...args], { cwd: dir, maxBuffer: 64 << 20 }).catch(
    (error: { stdout: string; stderr: string }) => {
      throw new Error(`${file} ${args.join(' ')} failed:\n${error.stdout}${error.stderr}`)
    },
  )
  return stdout + stderr
}

const bin = (name: string): string => join(dir, 'node_modules/.bin', name)

const document = toOpenApi(allRoutes, { version: '0.1.0' })
cpSync(import.meta.dirname, dir, { recursive: true })
writeFileSync(join(dir, 'openapi.json'), JSON.stringify(document))
const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods))

const redocly = async (): Promise<void> => {
  const text = await output(bin('redocly'), 'lint', '--config', 'redocly.yaml', 'openapi.json')
  if (/warning/i.test(text)) throw new Error(`Expected no warning of Redocly, got:\n${text}`)
}

const typescript = async (): Promise<void> => {
  await output(bin('openapi-typescript'), 'openapi.json', '-o', 'api.ts')
  const text = readFileSync(join(dir, 'api.ts'), 'utf8')
  const found = operations.filter(({ operationId }) => text.includes(`operations["${String(operationId)}"]`))
  if (found.length !== operations.length)
    throw new Error(`Expected ${operations.length} operations of openapi-typescript, got ${found.length}`)
  renameSync(join(dir, 'usage.ts.txt'), join(dir, 'usage.ts'))
  renameSync(join(dir, 'main.ts'), join(dir, 'main.ts.txt')) // not part of the client
  await output(bin('tsc'), '-p', 'tsconfig.json')
}

const python = async (): Promise<void> => {
  const args = [
    'generate',
    '--path',
    'openapi.json',
    '--config',
    'openapi-python-client.yaml',
    '--output-path',
    'python',
    '--fail-on-warning',
    '--meta',
    'none',
  ]
  const text = await output('venv/bin/openapi-python-client', ...args)
  if (/warning|error/i.test(text))
    throw new Error(`Expected no warning of openapi-python-client, got:\n${text}`)
  const files = readdirSync(join(dir, 'python/api'), { recursive: true, encoding: 'utf8' })
  const found = files.filter((path) => path.endsWith('.py') && !path.endsWith('__init__.py'))
  if (found.length !== operations.length)
    throw new Error(`Expected ${operations.length} operations of openapi-python-client, got ${found.length}`)
}

/** The exit code of a run without the generators. */
const NOT_INSTALLED = 3

const install = async (): Promise<void> => {
  await output('npm', 'install', '--no-audit', '--no-fund', '--ignore-scripts')
  await output('python3', '-m', 'venv', 'venv')
  await output('venv/bin/pip', 'install', '--quiet', '--requirement', 'requirements.txt')
}

await install().catch((error: unknown) => {
  process.stderr.write(`The generators cannot be installed: ${messageOf(error)}\n`)
  process.exit(NOT_INSTALLED)
})
for (const generator of [redocly, typescript, python]) {
  await generator()
  process.stdout.write(`${generator.name}: ${operations.length} operations, no warnings\n`)
}
