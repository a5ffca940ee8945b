# Prepares a Windows guest for Deskhand. Run it once in the guest, as an administrator, from the Deskhand disc:
#   powershell -ExecutionPolicy Bypass -File D:\install.ps1
# It needs qemu-ga-x86_64.msi beside it (docs/windows.md says where it comes from). It changes no clock, no
# licence and no account.
$ErrorActionPreference = 'Stop'
$disc = Split-Path -Parent $MyInvocation.MyCommand.Path
$box = 'C:\ProgramData\Deskhand'
New-Item -ItemType Directory -Force -Path "$box\in", "$box\out" | Out-Null
# The user's program answers here, so every user may write here, and nowhere else in the folder.
icacls.exe "$box\in" "$box\out" /grant '*S-1-5-32-545:(OI)(CI)M' | Out-Null
Copy-Item -Force "$disc\session.ps1" "$box\session.ps1"

# The agent on COM1: the only port that Windows drives without a driver disc.
$msi = "$disc\qemu-ga-x86_64.msi"
if (-not (Test-Path $msi)) { throw "$msi is missing: build the disc with --agent" }
$done = Start-Process msiexec.exe -Wait -PassThru -ArgumentList "/i `"$msi`" /qn /norestart"
if ($done.ExitCode -notin 0, 3010) { throw "the agent's installer ended with $($done.ExitCode)" }
$key = 'HKLM:\SYSTEM\CurrentControlSet\Services\QEMU-GA'
$program = 'C:\Program Files\Qemu-ga\qemu-ga.exe'
Set-ItemProperty $key ImagePath "`"$program`" -d --retry-path -m isa-serial -p COM1"
Set-Service QEMU-GA -StartupType Automatic
Restart-Service QEMU-GA -ErrorAction SilentlyContinue

# The user's session: hidden, started at every logon.
$arguments = "-NoProfile -ExecutionPolicy Bypass -WindowStyle Hidden -File $box\session.ps1"
$action = New-ScheduledTaskAction -Execute 'powershell.exe' -Argument $arguments
$trigger = New-ScheduledTaskTrigger -AtLogOn
$users = New-ScheduledTaskPrincipal -GroupId 'S-1-5-32-545'
$settings = New-ScheduledTaskSettingsSet -AllowStartIfOnBatteries -ExecutionTimeLimit 0
Register-ScheduledTask -Force -TaskName 'Deskhand session' -Action $action -Trigger $trigger `
    -Principal $users -Settings $settings | Out-Null

# A screen that never sleeps and never locks: a locked desktop answers no key.
powercfg.exe /change monitor-timeout-ac 0
powercfg.exe /change standby-timeout-ac 0
powercfg.exe /hibernate off
Write-Output 'Programs of an administrator can stop the agent and answer for it: let a standard user log in.'
Write-Output 'Deskhand is installed. Log out, log in once, then shut Windows down.'
