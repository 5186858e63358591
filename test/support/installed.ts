import { execFile } from 'node:child_process'
import { cp, mkdir, readdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { packageDir } from '../../src/package/built.ts'
import { tempDir } from './tempDir.ts'

const execute = promisify(execFile)

/** What `npm pack` needs of the checkout. */
const PARTS = ['package.json', 'tsconfig.json', 'LICENSE', 'README.md', 'bin', 'src', 'docs']

/**
 * The tarball of `npm pack`, made now. It is made of a copy of the checkout, because `npm pack` replaces `dist`, which other tests
 * may be reading or replacing.
 */
export const npmPack = async (): Promise<string> => {
  const [cwd, to] = [tempDir(), tempDir()]
  for (const part of PARTS) await cp(join(packageDir, part), join(cwd, part), { recursive: true })
  await symlink(join(packageDir, 'node_modules'), join(cwd, 'node_modules'))
  const { stdout } = await execute('npm', ['pack', '--json', '--pack-destination', to], { cwd })
  // Scripts print before the list.
  const [{ filename }] = JSON.parse(stdout.slice(stdout.indexOf('['))) as [{ filename: string }]
  return join(to, filename)
}

/** Unpacks a tarball into a new directory, which then contains `package`. */
export const unpacked = async (tarball: string): Promise<string> => {
  const dir = tempDir()
  await execute('tar', ['-xzf', tarball, '-C', dir])
  return join(dir, 'package')
}

/**
 * A project with the package installed, as `npm i` does it: `svc` is a folder of `node_modules` beside its dependencies. The
 * dependencies are those of the checkout, because a test needs no registry.
 */
export const install = async (unpackedPackage: string, project: string): Promise<string> => {
  const dir = tempDir()
  await cp(project, dir, { recursive: true })
  const modules = join(dir, 'node_modules')
  await mkdir(modules)
  for (const name of await readdir(join(packageDir, 'node_modules')))
    if (!['.bin', '.cache', '.package-lock.json', 'svc'].includes(name))
      await symlink(join(packageDir, 'node_modules', name), join(modules, name))
  await cp(unpackedPackage, join(modules, 'svc'), { recursive: true })
  const programs = join(modules, '.bin')
  await mkdir(programs)
  for (const name of await readdir(join(packageDir, 'node_modules/.bin')))
    await symlink(join(packageDir, 'node_modules/.bin', name), join(programs, name))
  await symlink('../svc/bin/svc.js', join(programs, 'svc'))
  return dir
}
