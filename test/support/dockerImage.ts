import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { promisify } from 'node:util'
import { packageDir } from '../../src/package/built.ts'
import { tempDir } from './tempDir.ts'

const textOf = (path: string): string => readFileSync(join(packageDir, path), 'utf8')

interface Image {
  /** The folder of the service in the image. */
  readonly dir: string
  readonly command: readonly string[]
}

/**
 * The files of `/srv/svc` in the image, assembled without Docker: each stage of the Dockerfile becomes a folder. Of the RUN lines,
 * `npm ci` is emulated with the packages of the checkout; the others change nothing in that folder.
 */
export const assembleImage = async (): Promise<Image> => {
  const stages = new Map<string, string>()
  let dir = ''
  for (const line of textOf('infra/Dockerfile').split('\n')) {
    const [instruction, ...given] = line.split(' ')
    const args = given.filter((each) => !each.startsWith('--') || each.startsWith('--from='))
    if (instruction === 'FROM') {
      dir = tempDir()
      const [base = '', , name = ''] = args
      const from = stages.get(base)
      if (from) copy(from, dir)
      stages.set(name, dir)
    } else if (instruction === 'COPY') copyLine(args, dir, stages)
    else if (instruction === 'RUN' && line.startsWith('RUN npm ci'))
      await installPackages(dir, { isForDevelopers: line.includes('--include=dev') })
  }
  const [, command = '[]'] = /^CMD (\[.*\])$/m.exec(textOf('infra/Dockerfile')) ?? []
  return { dir, command: JSON.parse(command) as string[] }
}

const copy = (from: string, to: string, filter?: (path: string) => boolean): void =>
  cpSync(from, to, {
    recursive: true,
    preserveTimestamps: true,
    verbatimSymlinks: true,
    ...(filter && { filter }),
  })

const copyLine = (args: readonly string[], dir: string, stages: ReadonlyMap<string, string>): void => {
  const [stage] = args
    .filter((each) => each.startsWith('--from='))
    .map((each) => each.slice('--from='.length))
  const paths = args.filter((each) => !each.startsWith('--'))
  const target = paths.at(-1) ?? ''
  for (const path of paths.slice(0, -1)) {
    const base = stage === undefined ? packageDir : (stages.get(stage) ?? '')
    const from = stage === undefined ? join(base, path) : join(base, relative('/srv/svc', path))
    if (stage === undefined && !(isInContext(path) && existsSync(from)))
      throw new Error(`Expected ${path} in the build context, got a path that .dockerignore excludes`)
    const isInto = target.endsWith('/') && statSync(from).isFile() // a folder is copied with its content only
    const to = join(dir, target, isInto ? basename(path) : '')
    copy(from, to, stage === undefined ? (file) => isInContext(relative(packageDir, file)) : undefined)
  }
}

const ignored = textOf('.dockerignore')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))

/** Whether the build context contains a path: the last line that matches it or a folder above it decides. */
const isInContext = (path: string): boolean => {
  const matches = (pattern: string): boolean =>
    pattern === '*' || path === pattern || path.startsWith(`${pattern}/`)
  const last = ignored.findLast((line) => matches(line.replace(/^!/, '')))
  return last === undefined || last.startsWith('!')
}

interface Lock {
  readonly packages: Readonly<Record<string, { readonly dev?: true }>>
}

/**
 * `npm ci` in a stage. Packages within others are found where their links lead. Only `prepare` with the packages for developers
 * makes files that the service needs; the other one fills a cache of compiled modules.
 */
const installPackages = async (
  dir: string,
  { isForDevelopers }: { readonly isForDevelopers: boolean },
): Promise<void> => {
  const { packages } = JSON.parse(textOf('package-lock.json')) as Lock
  for (const [path, { dev }] of Object.entries(packages)) {
    const isWanted = path.lastIndexOf('node_modules/') === 0 && (isForDevelopers || !dev)
    const [from, to] = [resolve(packageDir, path), join(dir, path)]
    if (!isWanted || !existsSync(from) || existsSync(to)) continue
    mkdirSync(dirname(to), { recursive: true })
    symlinkSync(from, to)
  }
  if (isForDevelopers) await promisify(execFile)('npm', ['run', '-s', 'prepare'], { cwd: dir })
  else mkdirSync(join(dir, 'node_modules/.cache/svc'), { recursive: true })
}
