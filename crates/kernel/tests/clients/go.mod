module clients

go 1.24
