# Runs as the logged-in user and does what the guest agent, a service, cannot: start programs on the screen
# and name its windows. Requests and answers are files, see workers/desktops/windows/user_session.py.
$ErrorActionPreference = 'Stop'
$box = 'C:\ProgramData\Deskhand'
$utf8 = New-Object Text.UTF8Encoding $false
New-Item -ItemType Directory -Force -Path "$box\in", "$box\out" | Out-Null
Add-Type -Namespace Deskhand -Name Screen -MemberDefinition @'
[DllImport("user32.dll")] public static extern IntPtr GetForegroundWindow();
[DllImport("user32.dll")] public static extern uint GetWindowThreadProcessId(IntPtr window, out uint process);
[DllImport("user32.dll")] public static extern bool IsWindowVisible(IntPtr window);
[DllImport("user32.dll", CharSet = CharSet.Unicode)]
public static extern int GetWindowText(IntPtr window, System.Text.StringBuilder text, int size);
public delegate bool Visit(IntPtr window, IntPtr unused);
[DllImport("user32.dll")] public static extern bool EnumWindows(Visit visit, IntPtr unused);
'@

function Get-Windows {
    $front = [Deskhand.Screen]::GetForegroundWindow()
    $names = @{}
    Get-Process | ForEach-Object { $names[[uint32]$_.Id] = $_.ProcessName }
    $script:found = New-Object Collections.ArrayList
    $visit = [Deskhand.Screen+Visit] {
        param($window, $unused)
        $text = New-Object Text.StringBuilder 512
        $length = [Deskhand.Screen]::GetWindowText($window, $text, 512)
        if ($length -gt 0 -and [Deskhand.Screen]::IsWindowVisible($window)) {
            [uint32]$process = 0
            [void][Deskhand.Screen]::GetWindowThreadProcessId($window, [ref]$process)
            $entry = @{ title = $text.ToString(); program = "$($names[$process])"; active = $window -eq $front }
            [void]$script:found.Add($entry)
        }
        return $true
    }
    [void][Deskhand.Screen]::EnumWindows($visit, [IntPtr]::Zero)
    return , $script:found
}

function Invoke-Request($request) {
    if ($request.verb -eq 'windows') {
        return @{ ok = $true; windows = @(Get-Windows) }
    }
    if ($request.verb -eq 'launch') {
        if ($request.arguments) { Start-Process -FilePath $request.file -ArgumentList $request.arguments }
        else { Start-Process -FilePath $request.file }
        return @{ ok = $true }
    }
    return @{ ok = $false; message = "unknown verb $($request.verb)" }
}

while ($true) {
    Get-ChildItem "$box\in\*.json" -ErrorAction SilentlyContinue | ForEach-Object {
        $request = $null
        # A file that is still being written is no JSON yet: the next round reads it whole.
        try { $request = [IO.File]::ReadAllText($_.FullName) | ConvertFrom-Json } catch { return }
        if ($null -eq $request) { return }
        try { $answer = Invoke-Request $request } catch { $answer = @{ ok = $false; message = "$_" } }
        Remove-Item -Force $_.FullName
        $text = ConvertTo-Json -Compress -Depth 4 $answer
        [IO.File]::WriteAllText("$box\out\$($_.Name).part", $text, $utf8)
        Move-Item -Force "$box\out\$($_.Name).part" "$box\out\$($_.Name)"
    }
    $old = (Get-Date).AddMinutes(-5)
    Get-ChildItem "$box\out" -ErrorAction SilentlyContinue | Where-Object { $_.LastWriteTime -lt $old } |
        Remove-Item -Force -ErrorAction SilentlyContinue
    Start-Sleep -Milliseconds 100
}
